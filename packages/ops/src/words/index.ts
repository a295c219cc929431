/**
 * Facts of operations in words, for the command line and the pages, and the rules of the engine that showing them needs.
 *
 * @packageDocumentation
 */
export { OUTCOMES } from "@carillon/core";
export {
  countText,
  covers,
  type Display,
  displayText,
  dueOwnerText,
  duration,
  FAILURES,
  formatInstant,
  isLate,
  limitText,
  ownerLimitText,
  relative,
  SUCCESSES,
  scopeText,
  sentence,
  silenceText,
} from "@carillon/core/internal";
export { eventText, explanationText, holdText } from "./explanation.js";
export { findingText } from "./finding.js";
export { reasonText, remedyText } from "./status.js";
export { isTraceUrl, TRACE_URL_REMEDY, traceLink } from "./trace.js";
export { type TrendFigure, trendText } from "./trend.js";
export type { Voice } from "./voice.js";
