import { redisError } from "@carillon/store";
import { describe, expect, it } from "vitest";

/** Texts of Redis 6.2, 7.0, 7.4 and 8.0, and Valkey 8.0, for a plain command and one in a script. */
const SAID: Record<string, string[]> = {
  REDIS_AUTH: [
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "NOPERM this user has no permissions to run the 'set' command or its subcommand",
    "NOPERM No permissions to access a key",
    "ERR Error running script (call to f_caee): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand",
    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: eefb, on @user_script:1.",
    "ERR ACL failure in script: User v has no permissions to run the 'set' command script: caee, on @user_script:1.",
    "ERR ACL failure in script: No permissions to access a key script: eefb, on @user_script:1.",
  ],
  REDIS_OUT_OF_MEMORY: [
    "OOM command not allowed when used memory > 'maxmemory'.",
    "ERR Error running script (call to f_67ed): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
    "OOM command not allowed when used memory > 'maxmemory'. script: 67ed, on @user_script:1.",
  ],
  REDIS_READ_ONLY: [
    "READONLY You can't write against a read only replica.",
    "ERR Error running script (call to f_67ed): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
    "READONLY You can't write against a read only replica. script: 67ed, on @user_script:1.",
  ],
  REDIS_UNAVAILABLE: [
    "NOREPLICAS Not enough good replicas to write.",
    "ERR Error running script (call to f_67ed): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.",
    "MISCONF Errors writing to the AOF file: No space left on device",
    "ERR Error running script (call to f_67ed): @user_script:1: @user_script: 1: -MISCONF Errors writing to the AOF file: No space left on device",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "ERR max number of clients reached",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "LOADING Redis is loading the dataset in memory",
    "CLUSTERDOWN The cluster is down",
  ],
  REDIS_ERROR: [
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "BUSYKEY Target key name already exists.",
  ],
};

describe("the errors of an ACL", () => {
  const remedy = (text: string) => redisError(new Error(text)).remedy;

  it.each(SAID["REDIS_AUTH"]?.filter((text) => /'set' command|run this command/.test(text)) ?? [])(
    "a command, which a user that only reads may lack: %s",
    (text) => expect(remedy(text)).toMatch(/Read-only users, such as carillon-viewer,/),
  );

  it.each(SAID["REDIS_AUTH"]?.filter((text) => /NOAUTH|WRONGPASS|key/.test(text)) ?? [])(
    "all else is a matter of user, password or namespace: %s",
    (text) => expect(remedy(text)).toMatch(/user and password/),
  );
});

describe("the errors of each Redis version have the same codes", () => {
  const cases = Object.entries(SAID).flatMap(([code, texts]) => texts.map((text) => [code, text] as const));
  it.each(cases)("%s: %s", (code, text) => {
    expect(redisError(new Error(text)).code).toBe(code);
  });
});
