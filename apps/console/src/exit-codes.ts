/** How the process ends; in the README too. */
export const EXIT = {
  stopped: 0,
  unexpected: 1,
  /** The environment is wrong. */
  config: 2,
} as const;
