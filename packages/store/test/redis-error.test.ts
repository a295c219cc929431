import { redisError, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";

/** Texts of Redis 6.2, 7.0, 7.4 and 8.0, and Valkey 8.0, for a plain command and one in a script. */
const SAID: Record<string, string[]> = {
  REDIS_AUTH: [
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "NOPERM this user has no permissions to run the 'set' command or its subcommand",
    "NOPERM No permissions to access a key",
    "NOPERM this user has no permissions to access one of the keys used as arguments",
    "NOPERM this user has no permissions to access one of the channels used as arguments",
    "NOPERM No permissions to access a channel",
    "ERR The user executing the script can't publish to the channel mentioned in the command script: 5776, on @user_script:1.",
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
    "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user.",
    "C0:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/openssl/ssl/record/ssl3_record.c:355:",
    "getaddrinfo EAI_AGAIN redis.internal",
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

it("a missing password is named in a few words", () => {
  const text =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
  const { code, message, remedy } = redisError(new Error(text));
  expect([code, message]).toEqual(["REDIS_AUTH", `Redis wants a password. ${remedy}`]);
});

it("a server that does not answer is no matter for the doctor, which cannot ask it either", () => {
  expect(redisError(new Error("Command timed out")).message).not.toContain("doctor");
});

describe("a user of Redis that lacks a right", () => {
  const redis = sharedRedis();
  let admin: Redis;
  beforeAll(async () => {
    admin = new Redis(redis.url);
  });
  afterAll(async () => {
    admin.disconnect();
  });

  it.each([
    ["a command", ["~*", "&*", "-time"], /\+time|ACL LOG/],
    ["the keys", ["resetkeys", "~{carillon}:*", "&*"], /~\{bells\}:\* ~\{bells:\*\}:\*/],
    ["the channels", ["~*", "resetchannels"], /&\{bells\}:wake &\{bells\}:cancel/],
  ])("is told which to grant: %s", async (_, rights, remedy) => {
    await admin.call("ACL", "SETUSER", "u", "reset", "on", ">p@ss/w:rd", "+@all", ...rights);
    const url = redis.url.replace("//", "//u:p@ss%2Fw:rd@");
    const store = new Store({ connection: url, namespace: "bells" });
    const failed = new Promise((_resolve, reject) => {
      const ears = { message() {}, standing() {}, failed: reject };
      const subscription = store.listen("wake", ears);
      void store
        .serverTime()
        .then(() => internalsOf(store).link.ask((client) => client.get(internalsOf(store).keys.queues)))
        .catch(reject)
        .finally(() => setTimeout(() => subscription.stop(), 1_000));
    });
    await expect(failed).rejects.toMatchObject({
      code: "REDIS_AUTH",
      remedy: expect.stringMatching(remedy),
    });
    await store.close();
  });

  it.concurrent.each<[string, () => string, RegExp, RegExp]>([
    [
      "TLS to a plain port",
      () => redis.url.replace("redis:", "rediss:"),
      /ETIMEDOUT|TLS/,
      /redis:\/\/ instead/,
    ],
    ["a name without address", () => "redis://no-such-host.invalid", /has no address/, /DNS/],
    ["a socket that is not there", () => "unix:///no-such.sock", /socket .* ENOENT/, /unixsocket/],
    ["a wrong password", () => redis.url.replace("//", "//u:pass%41@"), /WRONGPASS/, /percent-encoded/],
  ])("%s is told apart", async (_, urlOf, message, remedy) => {
    const store = new Store({ connection: urlOf(), readyTimeout: 7_000 });
    await expect(store.serverTime()).rejects.toMatchObject({
      message: expect.stringMatching(message),
      remedy: expect.stringMatching(remedy),
    });
    await store.close();
  });
});

describe("the errors of each Redis version have the same codes", () => {
  const cases = Object.entries(SAID).flatMap(([code, texts]) => texts.map((text) => [code, text] as const));
  it.each(cases)("%s: %s", (code, text) => {
    expect(redisError(new Error(text)).code).toBe(code);
  });
});
