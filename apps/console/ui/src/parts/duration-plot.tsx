import { duration } from "@carillon/ops/words";
import type { Outcome } from "@carillon/sdk";
import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { fullTime, shortTime, useZone } from "../lib/time.js";
import { toneOf } from "./state.js";

interface Props {
  runs: readonly { readonly at: number; readonly ms: number; readonly outcome: Outcome | undefined }[];
  /** Text alternative. */
  label: string;
}

const HEIGHT = 180;
/** Lengths between two labels of time, in s: no two labels show the same second. */
const STEPS = [
  1,
  5,
  15,
  60,
  300,
  900,
  3_600,
  3 * 3_600,
  12 * 3_600,
  86_400,
  7 * 86_400,
  28 * 86_400,
  364 * 86_400,
];
/** Lengths between two labels of a duration, in ms. */
const DURATIONS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800].map((seconds) => seconds * 1_000),
  ...[1, 2, 6, 12, 24, 48, 168].map((hours) => hours * 3_600_000),
];
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** Durations of runs by their start, from 0. Failed runs are a series of their own. */
export default function DurationPlot({ runs, label }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const zone = useZone();
  useEffect(() => {
    const parent = place.current;
    if (!parent) return;
    // `light-dark()` is only resolved in a property that takes colours. Read at each drawing, because the theme may
    // have changed.
    const resolved = (name: string) => () => {
      parent.style.color = `var(${name})`;
      return getComputedStyle(parent).color;
    };
    const [ok, bad, ink, line] = [
      resolved("--ok"),
      resolved("--bad"),
      resolved("--ink-soft"),
      resolved("--line"),
    ];
    const sorted = [...runs].sort((a, b) => a.at - b.at);
    const values = (isBad: boolean) =>
      sorted.map(({ ms, outcome }) => ((toneOf(outcome) === "bad") === isBad ? Math.max(1, ms) : null));
    const points = (name: string, stroke: () => string) => ({
      label: name,
      stroke,
      width: 0,
      paths: () => null,
      points: { show: true, size: 5, fill: stroke, width: 0 },
      value: (_: unknown, ms: number | null) => (ms === null ? "–" : duration(ms)),
    });
    const today = Date.now();
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const plot = new UPlot(
      {
        width: parent.clientWidth,
        height: HEIGHT,
        tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1_000), zone),
        scales: { y: { range: (_, __, most) => [0, Math.max(1, 1.05 * most)] } },
        axes: [
          {
            ...axis,
            space: 110,
            incrs: STEPS,
            values: (_, splits) => splits.map((at) => shortTime(at * 1_000, zone, today)),
          },
          { ...axis, size: 80, incrs: DURATIONS, values: (_, splits) => splits.map((ms) => duration(ms)) },
        ],
        series: [
          {
            label: "Started",
            value: (_, at) => (at === null ? "–" : fullTime(at * 1_000, zone)),
          },
          points("Ended well", ok),
          points("Failed", bad),
        ],
      },
      [sorted.map(({ at }) => at / 1_000), values(false), values(true)],
      parent,
    );
    const redraw = () => plot.redraw(false);
    const resize = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: HEIGHT }));
    resize.observe(parent);
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributes: true });
    DARK.addEventListener("change", redraw);
    return () => {
      resize.disconnect();
      theme.disconnect();
      DARK.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [runs, zone]);
  return <div ref={place} role="img" aria-label={label} className="plot" />;
}
