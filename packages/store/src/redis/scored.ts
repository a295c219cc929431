/** Members of a sorted set and their scores, in order. @param flat as a command with `WITHSCORES` answers */
export function scored(flat: readonly string[]): [member: string, score: number][] {
  return flat.flatMap((member, i) => (i % 2 === 0 ? [[member, Number(flat[i + 1])]] : []));
}
