import { z } from "zod";

export type StatusRange = "2xx" | "3xx" | "4xx" | "5xx";
/** A status, a hundred of them, or a list of both: `200`, `"2xx"`, `["2xx", 404]`. */
export type Statuses = number | StatusRange | readonly (number | StatusRange)[];

const one = z.union([z.int().min(200).max(599), z.enum(["2xx", "3xx", "4xx", "5xx"])]);

export const statusesSchema = z.union([one, z.array(one).max(400)], {
  error: "must be a status from 200 to 599, a range such as 2xx, or a list of them",
});

export function matchesStatus(statuses: Statuses, status: number): boolean {
  const list = typeof statuses === "object" ? statuses : [statuses];
  return list.some((one) =>
    typeof one === "number" ? one === status : Number(one[0]) === Math.floor(status / 100),
  );
}

/**
 * The 4xx statuses that a retry may fix: request timeout, conflict (the first attempt is still running), too early, too
 * many requests.
 */
const PASSING = new Set([408, 409, 425, 429]);

/** Statuses not worth a retry: the address has moved permanently, or the request itself is at fault. */
export const PERMANENT_STATUSES: readonly number[] = [
  301,
  308,
  ...Array.from({ length: 100 }, (_, i) => 400 + i).filter((status) => !PASSING.has(status)),
];
