import { it } from "vitest";
import { staysWithinItsBands } from "./smoke.js";

/* All benches share their servers, options and reports: two show that these work, `npm run test:builders` runs each. */
it.each(["burst", "trips"])("%s stays within its bands", staysWithinItsBands);
