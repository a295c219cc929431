import { type ConnectionSpec, readConnection, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { type RedisCluster, type RedisServer, startCluster, startRedis } from "@carillon/testing";
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis-5";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

type Given = Exclude<ConnectionSpec, string | { options: unknown; status: string }> & { url: string };
const read = (url: string, more: Partial<Given> = {}) => readConnection({ url, ...more } as Given);

describe("a Redis URL", () => {
  it.each([
    ["redis://localhost", { topology: "single", hosts: [{ host: "localhost", port: 6379 }], tls: false }],
    [
      "rediss://tower:b%40ll@[::1]:7000/3",
      {
        topology: "single",
        hosts: [{ host: "::1", port: 7000 }],
        tls: true,
        username: "tower",
        password: "b@ll",
        db: 3,
      },
    ],
    [
      "redis://:bell@a:1, redis://b:2",
      {
        topology: "cluster",
        hosts: [
          { host: "a", port: 1 },
          { host: "b", port: 2 },
        ],
        tls: false,
        password: "bell",
      },
    ],
    [
      "redis+sentinel://a,b:2,[::1]:3/main",
      {
        topology: "sentinel",
        hosts: [
          { host: "a", port: 26379 },
          { host: "b", port: 2 },
          { host: "::1", port: 3 },
        ],
        name: "main",
        tls: false,
      },
    ],
    [
      "rediss+sentinel://tower:b%2Fell@a:1/main.0/2?sentinelUsername=guard&sentinelPassword=o%26n+e",
      {
        topology: "sentinel",
        hosts: [{ host: "a", port: 1 }],
        name: "main.0",
        db: 2,
        tls: true,
        username: "tower",
        password: "b/ell",
        sentinelUsername: "guard",
        sentinelPassword: "o&n+e",
      },
    ],
    [
      "redis+sentinel://:b@ll@a/main",
      {
        topology: "sentinel",
        hosts: [{ host: "a", port: 26379 }],
        name: "main",
        tls: false,
        password: "b@ll",
      },
    ],
    [
      "unix://:b@ll@/a.sock",
      { topology: "single", hosts: [], path: "/a.sock", tls: false, password: "b@ll" },
    ],
    ["redis://a?family=6", { topology: "single", hosts: [{ host: "a", port: 6379 }], tls: false, family: 6 }],
    [
      "unix://tower:b%2Fell@/run/redis.sock?db=2",
      {
        topology: "single",
        hosts: [],
        path: "/run/redis.sock",
        tls: false,
        username: "tower",
        password: "b/ell",
        db: 2,
      },
    ],
    ["redis+unix:///a%20b.sock", { topology: "single", hosts: [], path: "/a b.sock", tls: false }],
  ])("is parsed: %s", (url, place) => {
    expect(read(url)).toEqual(place);
  });

  it.each([
    "",
    "localhost:6379",
    "http://:hunter2@localhost",
    "redis://:hunter2@",
    "redis://:hunter2@localhost/bell",
    "redis://:hunter2@localhost/-1",
    "redis://:hunter2@localhost:port",
    "redis://:hunter2@a,rediss://b",
    "redis://:hunter2@a/1,redis://b",
    "redis+sentinel://:hunter2@a:1",
    "redis+sentinel://:hunter2@a:1/",
    "redis+sentinel:///main",
    "redis+sentinel://:hunter2@a:1,,b:2/main",
    "redis+sentinel://:hunter2@a:1/main/bell",
    "redis+sentinel://:hunter2@a:1/main/0/0",
    "redis+sentinel://:hunter2@a:1/main?password=hunter2",
    "redis+sentinel://:hunter2@a:1/a name",
    "redis+sentinel://redis://:hunter2@a:1/main",
    "redis+sentinel://:hunter2@a:1/main#hunter2",
    "redis://:hunter2@a?tls=true",
    "rediss://a?password=hunter2",
    "redis://a?hunter2@",
    "redis://:hunter2@a#b",
    "redis://a?family=hunter2",
    "redis://a:1?family=4,redis://b:2?family=4",
    "redis://a:1,redis://:hunter2@b:2,redis://:other@c:3",
    "redis://user:12/hunter2@a",
    "redis://user:12?hunter2@a",
    "redis://:hunter#2@a",
    "redis://:50%hunter2@a",
    "unix://a",
    "unix:///run/redis.sock?path=hunter2",
  ])("is refused, and not quoted: %s", (url) => {
    expect(() => read(url)).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTION",
        field: "connection",
        message: expect.not.stringContaining("hunter2"),
        remedy: expect.any(String),
      }),
    );
  });

  it.each([
    ["redis://:bell@a?tls=true", /"tls".*rediss:\/\//],
    ["redis://a?password=bell", /"password".*:password@/],
    ["redis+sentinel://a/main?db=1", /"db"/],
    ["redis://:be/ll@a", /Percent-encode/],
    ["redis://u:1?ll@a", /Percent-encode/],
    ["redis://:50%off@a", /Percent-encode/],
    ["redis://:be,ll@a", /Percent-encode/],
    ["redis://:b@e?ll@a", /Percent-encode/],
    ["redis://:b@e/ll@a", /Percent-encode/],
    ["redis://:b@e#ll@a", /Percent-encode/],
    ["redis://u:b@a/x,redis://u:b@c", /not a number/],
  ])("that is refused names the reason: %s", (url, reason) => {
    expect(() => read(url)).toThrow(reason);
  });

  it.each<[string, Partial<Given>]>([
    ["redis://a/1,redis://b/1", {}],
    // Without the refusal, data would be sent unencrypted although TLS was requested.
    ["redis://a", { tls: { ca: "…" } }],
    ["redis+sentinel://a/main", { tls: {} }],
  ])("must not contradict other options: %s %o", (url, more) => {
    expect(() => read(url, more)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });
});

it.each([
  [{ host: "r.example", port: 6380 }, "redis://r.example:6380"],
  [{ options: { host: "r.example" } }, "redis://r.example:6379"],
  [{ port: 6380 }, "redis://localhost:6380"],
])("the options %j of an ioredis client are answered with a URL", (connection, url) => {
  const open = () => new Store({ connection: connection as never });
  expect(open).toThrow(`the address is missing from a URL. Give "${url}"`);
});

describe("a client of the application", () => {
  let redis: RedisServer;
  let cluster: RedisCluster;
  beforeAll(async () => {
    [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
  });
  afterAll(() => Promise.all([redis.stop(), cluster.stop()]));

  /** Uses a connection as Carillon does. */
  async function use(connection: ConnectionSpec): Promise<unknown> {
    const store = new Store({ connection, readyTimeout: 5_000 });
    try {
      return await internalsOf(store).link.ask((client) => client.hset("bell", "rings", "1"));
    } finally {
      await store.close();
    }
  }
  const hosts = () => cluster.nodes.map(({ host, port }) => ({ host, port }));

  it.each<[string, () => ConnectionSpec]>([
    ["a client", () => new Redis(redis.port, { lazyConnect: true, stringNumbers: true })],
    ["options", () => ({ url: redis.url, options: { lazyConnect: true, stringNumbers: true } })],
    [
      "a cluster's client",
      () => new Cluster(hosts(), { lazyConnect: true, redisOptions: { stringNumbers: true } }),
    ],
    [
      "a cluster's options",
      () => ({ url: cluster.url, options: { lazyConnect: true, stringNumbers: true } }),
    ],
    ["a client of ioredis 5", () => new Redis5(redis.port, { lazyConnect: true, stringNumbers: true })],
    [
      "a cluster's client of ioredis 5",
      () => new Cluster5(hosts(), { lazyConnect: true, redisOptions: { stringNumbers: true } }),
    ],
  ])(
    "that opens by itself only when asked, and reads numbers as text, is no reason to do so: %s",
    async (_, spec) => {
      expect(await use(spec())).toBeTypeOf("number");
    },
  );

  it.each<[string, () => ConnectionSpec]>([
    ["a client", () => new Redis({ lazyConnect: true, keyPrefix: "app:" })],
    ["options", () => ({ url: "redis://localhost", options: { keyPrefix: "app:" } })],
    [
      "a cluster's client",
      () => new Cluster(hosts(), { lazyConnect: true, redisOptions: { keyPrefix: "app:" } }),
    ],
    ["a client of ioredis 5", () => new Redis5({ lazyConnect: true, keyPrefix: "app:" })],
  ])("must not have a keyPrefix: %s", async (_, spec) => {
    await expect(use(spec())).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "connection",
      remedy: expect.stringContaining("namespace"),
    });
  });

  it.each<[string, object]>([
    ["an address", { port: 1 }],
    ["Sentinels", { sentinels: [] }],
    ["a misspelt option", { comandTimeout: 1 }],
  ])("alongside a URL, options must not have %s", async (_, options) => {
    await expect(use({ url: redis.url, options })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: expect.stringContaining("connection.options."),
    });
  });

  it("a connection has no other fields", async () => {
    const unknown = { url: redis.url, password: "bell" } as ConnectionSpec;
    await expect(use(unknown)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "connection.password",
    });
  });

  it.each<[string, (host: string, port: number) => ConnectionSpec]>([
    ["URL", (host, port) => `redis://${host}:${port}`],
    ["client", (host, port) => new Redis({ host, port, lazyConnect: true })],
  ])("a cluster is recognised by one address: %s", async (_, specOf) => {
    const { host, port } = cluster.nodes[0]!;
    const store = new Store({ connection: specOf(host, port) });
    // Some of these keys are another node's.
    const reads = ["a", "b", "c", "d"].map((key) => internalsOf(store).link.ask((client) => client.get(key)));
    expect(await Promise.all(reads)).toEqual([null, null, null, null]);
    expect(await store.info()).toHaveLength(3);
    const other = store.connect("safe");
    expect(other.isCluster).toBe(true);
    other.disconnect();
    await store.close();
  });

  it.each([["a database in a cluster", (port: number) => `redis://127.0.0.1:${port}/3`, "database"]])(
    "%s is refused by name",
    async (_, urlOf, message) => {
      const store = new Store({ connection: urlOf(cluster.nodes[0]!.port) });
      await expect(store.info()).rejects.toMatchObject({ message: expect.stringContaining(message) });
      await store.close();
    },
  );
});
