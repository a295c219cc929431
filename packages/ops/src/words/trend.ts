import { duration } from "@carillon/core/internal";
import type { Trend } from "../runs/trends.js";

type Figures = Trend["figures"];
export type TrendFigure = keyof Figures;

interface TrendText {
  readonly text: string;
  /** The difference from the time before, such as `+12`; undefined: there is none, or it is not known. */
  readonly change?: string;
  /** Whether it is higher than in the time before, and whether that is worse. */
  readonly more?: boolean;
  readonly worse?: boolean;
}

const TEXTS: { readonly [Name in TrendFigure]: (value: number) => string } = {
  runs: whole,
  share: percent,
  p50: (ms) => duration(ms),
  p95: (ms) => duration(ms),
  late: whole,
  skipped: whole,
};

/** A figure of a trend, and its difference from the time before; undefined: there is none. */
export function trendText({ figures, before }: Trend, name: TrendFigure): TrendText | undefined {
  const [value, was] = [figures[name], before?.[name]];
  if (value === undefined) return undefined;
  const text = TEXTS[name](value);
  if (was === undefined || value === was) return { text };
  const more = value > was;
  const change = `${more ? "+" : "−"}${TEXTS[name](Math.abs(value - was))}`;
  return { text, change, more, worse: name !== "runs" && more === (name !== "share") };
}

function whole(n: number): string {
  return n.toLocaleString("en");
}

/** Rounded down: 100% means that none failed. */
function percent(share: number): string {
  return `${Math.floor(share * 1_000 + 1e-9) / 10}%`;
}
