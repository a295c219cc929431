import { z } from "zod";
import type { CompiledSchedule, ManualSchedule } from "../types.js";
import type { Kind } from "./kind.js";

const NEVER: CompiledSchedule = { next: () => undefined, latest: () => undefined };

/** No time of its own: the task runs only when it is triggered. It stands alone, without bounds, exclusions and unions. */
export const manual: Kind<ManualSchedule, z.ZodLiteral<true>> = {
  key: "manual",
  example: true,
  takes: [],
  shape: z.literal(true, "not true"),
  normalise: () => ({ manual: true }),
  compile: () => ({ compiled: NEVER, zone: "UTC", grain: 1 }),
  exclude: () => ({ wholeDays: false, on: () => [], times: () => NEVER }),
  label: () => "manual",
  canonical: () => "manual",
  describe: () => "only when it is triggered",
  lint() {},
};
