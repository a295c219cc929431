import type { AnswerTo } from "@carillon/ops";
import { countText } from "@carillon/ops/words";
import { useSearchParams } from "wouter";
import { later } from "../../lib/later.js";
import { useCall } from "../../lib/query.js";
import { changed, timeIn } from "../../lib/request.js";
import { useNow } from "../../lib/time.js";
import { Loaded, PageHead, Panel } from "../../parts/page.js";
import { labelOf } from "../../words.js";
import { Board } from "./board.js";
import { type BoardView, spanOf, useWidth } from "./scale.js";
import { Truth } from "./truth.js";
import { Within } from "./within.js";

const OwnerHead = later(() => import("./owner-head.js"));

const BYS = ["task", "queue", "owner", "tag"] as const;
const SPANS = ["1h", "6h", "24h"] as const;
/** Read interval in ms. */
const OFTEN = 10_000;

/** The start page: one sentence, a board of time around now, and what happened in the time that is chosen on it; of all, or of one owner. */
export function Now() {
  const [params, setParams] = useSearchParams();
  const now = useNow();
  const [ref, width] = useWidth();
  const span = spanOf(params.get("span") ?? "6h", width, now);
  const by = BYS.find((one) => one === params.get("by"));
  const owner = params.get("owner") || undefined;
  const asked = width === 0 ? undefined : { ...span, by, owner };
  const board = useCall("occurrences.board", asked, { refresh: OFTEN, maxAge: 3, moving: ["from", "to"] });
  // Before the first task there is nothing to draw.
  const isEmpty = board.data?.tasks === 0 && board.data.sums.ended === 0;
  const set = (changes: Partial<BoardView>) => setParams(changed(changes), { replace: true });
  const chip = (name: "by" | "span", value: string, shown: boolean, text: string) => (
    <button
      key={value}
      type="button"
      className="chip"
      aria-pressed={shown}
      onClick={() => set({ [name]: value, row: undefined, at: undefined })}
    >
      {text}
    </button>
  );
  const view: BoardView = {
    row: params.get("row") ?? undefined,
    at: timeIn(params, "at"),
    from: timeIn(params, "from"),
    to: timeIn(params, "to"),
  };
  const title = (
    <>
      Planned and actual
      {board.data === undefined ? null : (
        <span className="unseen">, {countText(board.data.rows.length, "row")}</span>
      )}
    </>
  );
  return (
    <>
      {owner === undefined ? <PageHead title="Now" /> : <OwnerHead owner={owner} />}
      <div className="stack">
        <Truth />
        {isEmpty ? null : (
          <Panel
            title={title}
            end={
              <div className="chips">
                {BYS.map((one) => chip("by", one, (by ?? board.data?.by) === one, `${labelOf(one)}s`))}
                <span aria-hidden="true" className="chip-gap" />
                {SPANS.map((one) =>
                  chip("span", one, (params.get("span") ?? "6h") === one, `±${one.replace("h", " h")}`),
                )}
              </div>
            }
          >
            <div ref={ref}>
              <Loaded of={board}>
                {(board) => (
                  <>
                    <Sums of={board} />
                    <Board board={board} width={width} view={view} set={set} />
                  </>
                )}
              </Loaded>
            </div>
          </Panel>
        )}
        {board.data === undefined || isEmpty ? null : (
          <Within board={board.data} owner={owner} view={view} set={set} />
        )}
      </div>
    </>
  );
}

/** Figures of the past on the board. */
function Sums({ of: { sums } }: { of: AnswerTo<"occurrences.board"> }) {
  return (
    <p className="board-sums">
      {(["ended", "late", "failed", "skipped"] as const).map((name) => (
        <span key={name}>
          <strong>{sums[name].toLocaleString("en")}</strong> {name === "ended" ? "runs ended" : name}
        </span>
      ))}
      {(["missed", "doubled"] as const).map((name) => (
        <span key={name} data-tone={sums[name] === 0 ? "ok" : "bad"} className="board-promise">
          <strong>{sums[name].toLocaleString("en")}</strong> {name}
        </span>
      ))}
      {sums.read < sums.ended ? (
        <span className="soft">{`from ${sums.read.toLocaleString("en")} of them, evenly over the time`}</span>
      ) : null}
    </p>
  );
}
