import { readEnvironment, Worker } from "@carillon/sdk";
import { bell } from "./bell.js";

void new Worker({ ...readEnvironment(), types: [bell] }).start();
