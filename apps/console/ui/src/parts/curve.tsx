import type { AnswerTo } from "@carillon/ops";
import { countText, duration } from "@carillon/ops/words";
import "./curve.css";

/** The load as it is, and as it would be over it. */
export function Curve({ of: { step, before, after } }: { of: AnswerTo<"tasks.spread">["curve"] }) {
  const [was, is] = [Math.max(0, ...before), Math.max(0, ...after)];
  const most = Math.max(1, was, is);
  const bars = (name: string, counts: readonly number[]) =>
    counts.map((count, i) =>
      count === 0 ? null : (
        // biome-ignore lint/suspicious/noArrayIndexKey: its place is what it is
        <rect key={i} data-of={name} x={i} y={most - count} width="1" height={count} />
      ),
    );
  const text = `At most ${countText(was, "start")} in ${duration(step)}, then ${is.toLocaleString("en")}.`;
  return (
    <>
      <span>{text}</span>
      <svg
        className="curve"
        viewBox={`0 0 ${before.length} ${most}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={text}
      >
        {bars("before", before)}
        {bars("after", after)}
      </svg>
      <span className="small soft">
        Pale: as it is. Solid: with the jitter. All tasks that the filter matches.
      </span>
    </>
  );
}
