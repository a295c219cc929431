import { expect, test } from "vitest";
import { RespReader } from "../src/resp.js";

const VALUES = [
  "+OK\r\n",
  ":12\r\n",
  "$5\r\na\r\nbc\r\n",
  "$-1\r\n",
  "*-1\r\n",
  "*0\r\n",
  "_\r\n",
  "*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n+x\r\n",
  "%1\r\n+key\r\n~2\r\n#t\r\n,1.5\r\n",
  "|1\r\n+ttl\r\n:5\r\n*1\r\n+value\r\n",
  ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\n\r\n\r\n",
  "=7\r\ntxt:abc\r\n",
  "-ERR no\r\n",
];

test("values are complete, however the bytes arrive", () => {
  const bytes = Buffer.from(VALUES.join(""), "latin1");
  for (const step of [1, 2, 3, 7, bytes.length]) {
    const reader = new RespReader();
    const read: string[] = [];
    for (let at = 0; at < bytes.length; at += step) {
      read.push(...reader.read(bytes.subarray(at, at + step)).map((value) => value.toString("latin1")));
    }
    expect(read).toEqual(VALUES);
  }
});

test("bytes that are not RESP pass unchanged", () => {
  const reader = new RespReader();
  expect(reader.read(Buffer.from("+OK\r\nPING\r\n")).map(String)).toEqual(["+OK\r\n", "PING\r\n"]);
  expect(reader.read(Buffer.from("+half")).map(String)).toEqual(["+half"]);
});
