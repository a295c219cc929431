import { z } from "zod";

/* Shapes of answers. An `id` names a schema in the description of the HTTP API. */

export const count = z.number().meta({ type: "integer" });
export const time = z.number().meta({ id: "Time", type: "integer", description: "UTC milliseconds." });
