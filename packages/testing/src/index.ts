export { checkOccurrences, type Violations } from "./assertions.js";
export { type VirtualClock, type VirtualStore, virtualStore } from "./clock.js";
export { type ClusterOptions, type RedisCluster, startCluster } from "./cluster.js";
export { type EventuallyOptions, eventually } from "./eventually.js";
export { type FreePortOptions, freePort } from "./ports.js";
export { RedisServer, type RedisServerOptions, startRedis } from "./redis.js";
