import { type Operator, operatorOf } from "@carillon/ops";
import { type RedisServer, type TestKit, type TestKitOptions, testKit } from "@carillon/testing";
import { beforeEach } from "vitest";
import { sharedRedis, standIn } from "./helpers.js";

type Options = Omit<TestKitOptions, "redis">;

export interface EachKit {
  readonly kit: TestKit;
  readonly ops: Operator;
  /** The server that test files share. */
  readonly redis: RedisServer;
  /** Closes the test's kit, and makes another one with other options. */
  renew(other: Options): Promise<void>;
}

/** A kit of its own for each test of a file or group, with its operations. */
export function eachKit(options: Options): EachKit {
  const redis = sharedRedis();
  let kit: TestKit;
  let ops: Operator;
  const open = async (other?: Options) => {
    kit = await testKit({ ...options, ...other, redis });
    ops = operatorOf(kit.client);
  };
  beforeEach(async () => {
    await open();
    return () => kit.close();
  });
  const renew = (other: Options) => kit.close().then(() => open(other));
  return { kit: standIn(() => kit), ops: standIn(() => ops), redis, renew };
}
