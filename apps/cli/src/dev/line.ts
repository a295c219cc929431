import { printable } from "../text.js";

/** A line of output: time, event, task, and more about it. @param task `owner/id` */
export function line(what: string, task = "", more = ""): string {
  const time = new Date().toLocaleTimeString("en-GB", { hour12: false });
  const name = task.replace(/^system\//, "");
  return `${`${time}  ${what.padEnd(9)}  ${printable(name).padEnd(16)}  ${printable(more)}`.trimEnd()}\n`;
}
