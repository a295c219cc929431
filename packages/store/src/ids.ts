import { randomBytes } from "node:crypto";

/** 64 random bits as 13 characters of [0-9a-z]: the part of an id that makes it unique, whoever else makes ids. */
export function newToken(): string {
  return randomBytes(8).readBigUInt64BE().toString(36).padStart(13, "0");
}
