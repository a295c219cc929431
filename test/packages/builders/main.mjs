import { putAll } from "./schedules.mjs";

void putAll().then((next) => console.log(JSON.stringify(next)));
