import type { UnsafeSetting } from "@carillon/core/internal";
import { CONNECTION_NAME } from "./options.js";

/** Facts that a server says about itself. Managed servers hide some: these are undefined. */
export interface ServerInfo {
  /** Whether it keeps an append-only file. */
  readonly aof: boolean | undefined;
  /** Its `maxmemory-policy`. */
  readonly eviction: string | undefined;
  /** Names of the fields that report a failed write to its disk. */
  readonly failing: readonly string[];
  /** In bytes; `most` is 0 without a limit. */
  readonly memory: { readonly used: number; readonly most: number };
  readonly role: string | undefined;
  /** `lag`: time since its last answer, in s. */
  readonly replicas: readonly { readonly name: string; readonly state: string; readonly lag: number }[];
  /** Sections that it does not show. */
  readonly hidden: readonly string[];
  /** Whether it is a node of a cluster. */
  readonly cluster: boolean;
}

/** A command that held a server for long. */
export interface SlowCommand {
  /** UTC ms of that server. */
  readonly at: number;
  readonly tookMs: number;
  readonly command: string;
  /** The address of the client that sent it, and its name, if it has one. */
  readonly client: string;
  /** Whether a connection with Carillon's name sent it. Connections that an application names itself do not count. */
  readonly ours: boolean;
}

const DISK = ["aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"];

/** A field of each section that each Redis has. */
const SECTIONS = { memory: "maxmemory", persistence: "rdb_last_bgsave_status", replication: "role" };

/** Reads a reply to `INFO`: managed servers often forbid `CONFIG`. */
export function readServerInfo(reply: string): ServerInfo {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(reply)?.[1];
  const number = (name: string) => Number(field(name) ?? 0);
  const aof = field("aof_enabled");
  return {
    aof: aof === undefined ? undefined : aof === "1",
    eviction: field("maxmemory_policy"),
    failing: DISK.filter((name) => field(name) === "err"),
    memory: { used: number("used_memory"), most: number("maxmemory") },
    role: field("role"),
    replicas: Array.from(
      reply.matchAll(/^(slave\d+):.*state=(\w+)(?:.*lag=(\d+))?/gm),
      ([, name = "", state = "", lag = "0"]) => ({ name, state, lag: Number(lag) }),
    ),
    hidden: Object.entries(SECTIONS).flatMap(([name, of]) => (field(of) === undefined ? [name] : [])),
    cluster: field("cluster_enabled") === "1",
  };
}

/** Settings with which this server may lose tasks, and those that it does not show. */
export function unsafeSettings({ eviction, aof }: Pick<ServerInfo, "eviction" | "aof">): UnsafeSetting[] {
  const settings = [
    ...(aof === undefined ? ["appendonly"] : []),
    ...(eviction === undefined ? ["maxmemory-policy"] : []),
  ];
  return [
    ...(settings.length > 0 ? [{ code: "UNKNOWN_SETTINGS", settings } as const] : []),
    ...(aof === false ? [{ code: "AOF_OFF" } as const] : []),
    ...(eviction !== undefined && eviction !== "noeviction"
      ? [{ code: "EVICTION", policy: eviction } as const]
      : []),
  ];
}

/** Reads a reply to `SLOWLOG GET`. Of the arguments only the command itself: others may be secret. */
export function readSlowlog(reply: unknown): SlowCommand[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((entry: unknown) => {
    if (!Array.isArray(entry)) return [];
    const [, seconds, micros, args, address = "", name = ""] = entry as unknown[];
    const [command] = Array.isArray(args) ? args : [];
    const client = [address, name].filter((part) => part !== "").join(" ");
    return [
      {
        at: Number(seconds) * 1_000,
        tookMs: Number(micros) / 1_000,
        command: String(command).toUpperCase(),
        client: String(client),
        ours: name === CONNECTION_NAME,
      },
    ];
  });
}
