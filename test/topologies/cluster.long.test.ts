import { readFile } from "node:fs/promises";
import { startCluster } from "@carillon/testing";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { Site } from "./site.js";

const ACL = new URL("../../deploy/redis/carillon.acl", import.meta.url);

test("a cluster, by one address in REDIS_URL and with its ACL; a slot moves while its task rings", async () => {
  // The test administers the cluster as the default user.
  const acl = (await readFile(ACL, "utf8")).replace("default off", "default on nopass ~* &* +@all");
  const cluster = await startCluster({ appendonly: true, replicas: 1, acl });
  const as = (user: string) => ({
    REDIS_URL: cluster.nodes[0]!.url.replace("//", `//carillon-${user}:change-me-${user}@`),
  });
  const site = await Site.open({ node: as("node"), app: as("app") });
  try {
    const slot = cluster.slotOf("{carillon:bells}");
    const from = await cluster.masterOf(slot);
    const to = cluster.nodes.find((node) => node !== from) as typeof from;
    await site.story(() => cluster.moveSlot(slot, to));
    expect(await cluster.masterOf(slot)).toBe(to);

    for (const { url } of [...cluster.nodes, ...cluster.replicas]) {
      const admin = new Redis(url);
      const refused = (await admin.call("ACL", "LOG")) as unknown[][];
      expect(refused.filter((entry) => !isIntroduction(entry))).toEqual([]);
      admin.disconnect();
    }
  } finally {
    await site.close();
    await cluster.stop();
  }
});

/**
 * Whether a refusal is about ioredis' own subscriber in a cluster: it sends its version whatever its options, and
 * continues if that is refused.
 */
function isIntroduction(entry: unknown[]): boolean {
  const field = (name: string) => String(entry[entry.indexOf(name) + 1]);
  const of = field("client-info");
  return /^client(\|setinfo)?$/.test(field("object")) && of.includes("name=ioredis-cluster(subscriber)");
}
