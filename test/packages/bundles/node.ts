import { Scheduler } from "@carillon/scheduler";
import { readEnvironment } from "@carillon/sdk";

void new Scheduler(readEnvironment()).start();
