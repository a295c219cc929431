import { Redis } from "ioredis";

/** Timing of the subscriptions to Sentinels, in ms. */
const PACE = {
  /** Wait before a Sentinel that does not answer is tried again. It may be long, because the others report as well. */
  reconnect: 10_000,
  /** Ping interval: a subscriber that never sends would not notice a dead connection. */
  askEvery: 20_000,
  /** Without an answer for this long, a new connection is tried. */
  silence: 5_000,
};

/**
 * Drops the connection as soon as a Sentinel reports a new master; the client then asks for its address. A demoted
 * master closes connections itself. One that is frozen, or cut off from the Sentinels only, does not, and would
 * continue to accept writes that are lost. ioredis' own `failoverDetector` prints to the console when a Sentinel is
 * down, and drops the connection for each failover of any master.
 * @param pace for tests only
 */
export function followFailovers(client: Redis, pace = PACE): Redis {
  let ears: Redis[] = [];
  let asking: NodeJS.Timeout | undefined;
  client.on("ready", () => {
    if (ears.length > 0) return;
    ears = listen(client, pace);
    asking = setInterval(() => {
      for (const ear of ears) ear.ping().catch(() => {});
    }, pace.askEvery).unref();
  });
  client.on("end", () => {
    clearInterval(asking);
    for (const ear of ears) ear.disconnect();
    ears = [];
  });
  return client;
}

/** One connection to each Sentinel. */
function listen(client: Redis, pace: typeof PACE): Redis[] {
  const { sentinels, name, sentinelUsername, sentinelPassword, sentinelTLS } = client.options;
  return (sentinels ?? []).map(({ host, port }) => {
    const ear = new Redis({
      host: host ?? "localhost",
      port: port ?? 26_379,
      ...(sentinelUsername ? { username: sentinelUsername } : {}),
      ...(sentinelPassword ? { password: sentinelPassword } : {}),
      ...(sentinelTLS ? { tls: sentinelTLS } : {}),
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false, // without a reply, it ends the process
      enableReadyCheck: false,
      socketTimeout: pace.silence,
      retryStrategy: () => pace.reconnect,
    });
    ear.on("error", () => {}); // one Sentinel may be down as long as another one is up
    ear.on("ready", () => ear.subscribe("+switch-master").catch(() => {}));
    ear.on("message", (_channel: string, message: string) => {
      const [master, , , newHost, newPort] = message.split(" ");
      if (master === name && !isConnectedTo(client, newHost, newPort)) reconnect(client);
    });
    return ear;
  });
}

/** The second Sentinel may report a failover that is already followed. */
function isConnectedTo({ stream }: Redis, host: string | undefined, port: string | undefined): boolean {
  return "remoteAddress" in stream && stream.remoteAddress === host && stream.remotePort === Number(port);
}

function reconnect(client: Redis): void {
  // While it asks the Sentinels, a disconnect would end ioredis for good, and it is about to learn the address anyway.
  if (client.status === "ready" || client.status === "connect") client.disconnect(true);
}
