/** Where Carillon's random bytes come from: while a simulation is at work, from its dice. */
export const chance: { bytes: ((count: number) => Buffer) | undefined } = { bytes: undefined };
