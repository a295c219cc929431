/** The source of Carillon's random bytes: the dice, while a simulation runs. */
export const chance: { bytes: ((count: number) => Buffer) | undefined } = { bytes: undefined };
