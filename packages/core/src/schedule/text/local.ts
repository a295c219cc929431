import { formatInstant } from "../../words/times.js";
import { HOUR, MINUTE, SECOND } from "../civil.js";
import type { Zone } from "../zone/offsets.js";

/** ISO 8601 with the offset of the zone at that time; undefined: UTC. */
export function localText(time: number, zone: Zone | undefined): string {
  if (zone === undefined) return formatInstant(time);
  const { offset } = zone.at(time);
  const size = Math.abs(offset);
  const two = (n: number) => String(Math.floor(n)).padStart(2, "0");
  const odd = size % MINUTE === 0 ? "" : `:${two((size % MINUTE) / SECOND)}`;
  const sign = offset < 0 ? "-" : "+";
  return `${wallText(time + offset)}${sign}${two(size / HOUR)}:${two((size % HOUR) / MINUTE)}${odd}`;
}

/** A wall clock time, without an offset. */
export function wallText(wall: number): string {
  return formatInstant(wall).slice(0, -1);
}
