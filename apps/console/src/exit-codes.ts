/** Exit codes; also listed in the README. */
export const EXIT = {
  stopped: 0,
  unexpected: 1,
  /** The environment is wrong. */
  config: 2,
} as const;
