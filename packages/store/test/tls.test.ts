import { type ConnectionSpec, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { clientTls, eventually, startCluster, startRedis, startSentinel } from "@carillon/testing";
import { afterEach, expect, it } from "vitest";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

function connect(connection: ConnectionSpec): Store {
  const store = new Store({ connection, readyTimeout: 1_000 });
  open.push(() => store.close());
  return store;
}

async function untilItWrites(store: Store): Promise<void> {
  await eventually(() => internalsOf(store).link.ask((client) => client.set("bell", "rings")));
}

it("a client checks a single server's certificate, and presents its own", async () => {
  const redis = await startRedis({ tls: true });
  open.push(() => redis.stop());
  const tls = clientTls();
  await untilItWrites(connect({ url: redis.url, tls }));
  await untilItWrites(connect({ url: redis.url, tls: { ...tls, servername: "localhost" } }));
  await untilItWrites(connect({ url: redis.url, options: { tls } }));

  const refused = { code: "REDIS_UNAVAILABLE", message: expect.stringContaining("TLS with Redis failed") };
  await expect(connect(redis.url).serverTime()).rejects.toMatchObject(refused);
  const stranger = { ...tls, servername: "bells.example" };
  await expect(connect({ url: redis.url, tls: stranger }).serverTime()).rejects.toMatchObject(refused);
  const plain = connect(redis.url.replace("rediss:", "redis:"));
  await expect(plain.serverTime()).rejects.toMatchObject({
    code: "REDIS_UNAVAILABLE",
    remedy: expect.stringContaining("rediss://"),
  });
});

it("a client does so with Sentinels and their servers, also after a failover", async () => {
  const group = await startSentinel({ tls: true, replicas: 1 });
  open.push(() => group.stop());
  const store = connect({ url: group.url, tls: clientTls() });
  await untilItWrites(store);
  await group.failover();
  await eventually(async () => {
    const info = await internalsOf(store).link.ask((client) => client.info());
    expect(info).toContain(`tcp_port:${group.master.port}`);
  });
  await untilItWrites(store);
});

it("a client does so with cluster nodes, by the URL's names and by announced addresses", async () => {
  const cluster = await startCluster({ tls: true });
  open.push(() => cluster.stop());
  await untilItWrites(connect({ url: cluster.url.replace("127.0.0.1", "localhost"), tls: clientTls() }));
});
