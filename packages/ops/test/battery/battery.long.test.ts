import { batteries } from "./suite.js";

/* Each operation with each kind of fault; `battery.nightly.test.ts` tries each kind at each write. */
batteries(false);
