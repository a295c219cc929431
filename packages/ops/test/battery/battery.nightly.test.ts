import { batteries } from "./suite.js";

batteries(true);
