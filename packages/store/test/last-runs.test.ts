import { internalsOf } from "@carillon/store/internal";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE } from "./bench.js";

describe("last runs", () => {
  const redis = sharedRedis();
  const bench = Bench.use(() => redis.url);
  let run: string;

  beforeEach(async () => {
    await bench.put({ id: "t", overlap: "allow" });
    run = await bench.run("t");
    await bench.work("t", run);
  });

  const last = () => bench.store.runs.last([bench.name("t"), bench.name("none")]);
  /** The connection ends when the next pipelines are sent. */
  const losing = (times: number) => {
    const { client } = internalsOf(bench.store).link;
    const real = client.pipeline.bind(client);
    let left = times;
    vi.spyOn(client, "pipeline").mockImplementation((commands) => {
      const pipeline = real(commands);
      left -= 1;
      if (left >= 0)
        pipeline.exec = async () =>
          (commands ?? []).map(() => [new Error("Connection is closed."), undefined]);
      return pipeline;
    });
  };

  it("are read again if the connection ends meanwhile", async () => {
    losing(1);
    expect((await last()).map((one) => one.run?.id)).toEqual([run, undefined]);
  });

  it("are an error that says so if it does not come back", async () => {
    losing(Number.POSITIVE_INFINITY);
    await expect(last()).rejects.toMatchObject({ code: "REDIS_UNAVAILABLE" });
  });

  it("are missing if their records are corrupt, which a read of one names", async () => {
    const { link, keys } = internalsOf(bench.store);
    const key = keys.queue(QUEUE).run(run);
    await link.ask((client) => client.hset(key, "info", "{"));
    expect((await last())[0]).toMatchObject({ run: undefined });
    await link.ask((client) => client.del(key).then(() => client.set(key, "foreign")));
    expect((await last())[0]).toMatchObject({ run: undefined });
    expect(await bench.store.runs.list(bench.name("t"), 10)).toEqual([]);
    await expect(bench.store.runs.get(QUEUE, run)).rejects.toMatchObject({ code: "UNSUPPORTED_FORMAT" });
  });
});
