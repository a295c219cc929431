import { it } from "vitest";
import { BANDS, staysWithinItsBands } from "./smoke.js";

it.each(Object.keys(BANDS))("%s stays within its bands", staysWithinItsBands);
