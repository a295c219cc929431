/** Exit codes; also listed in the README. */
export const EXIT = {
  stopped: 0,
  unexpected: 1,
  /** The environment is wrong, or the port is taken. */
  config: 2,
  /** This Redis would lose tasks. */
  unsafeRedis: 3,
  /** A second signal while stopping. */
  killed: 130,
} as const;
