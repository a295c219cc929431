// Results of a run, as an object and as text.

import { tableOf } from "../lib/table.mjs";

/** Without a failure in n trials its probability is, at 95 %, below 3/n (the rule of three). */
function bound(n) {
  return n === 0 ? 1 : Math.min(1, 3 / n);
}

export function summary(run, controls) {
  const { options, found, results } = run;
  const faultsByKind = {};
  for (const { kind, effective } of results) {
    faultsByKind[kind] ??= { faults: 0, effective: 0 };
    faultsByKind[kind].faults += 1;
    if (effective) faultsByKind[kind].effective += 1;
  }
  const points = {};
  for (const { point, kind, effective } of results) {
    if (!point || !effective) continue;
    points[point] ??= {};
    points[point][kind] = (points[point][kind] ?? 0) + 1;
  }
  const effectiveFaults = results.filter(({ effective }) => effective).length;
  return {
    seed: options.seed,
    topology: options.topology,
    seconds: options.seconds,
    nodes: options.nodes,
    occurrences: run.occurrences,
    faults: results.length,
    effectiveFaults,
    duplicates: found.duplicates.length,
    gaps: found.gaps.length,
    overlaps: found.overlaps.length,
    limits: found.limits.length,
    frozen: found.frozen.length,
    paused: found.paused.length,
    stale: found.stale.length,
    items: found.items.length,
    pending: found.pending.length,
    early: found.early.length,
    counters: found.counters.length,
    regressions: found.regressions.length,
    indexes: found.indexes.length,
    undecided: found.undecided.length,
    details: detailsOf(found),
    nominalTimes: found.nominalTimes,
    pairsOfRuns: found.pairsOfRuns,
    runsAtLimit: found.runsAtLimit,
    freezes: run.freezes,
    frozenSkips: found.frozenSkips,
    runsAfterEdits: found.runsAfterEdits,
    staleCommits: run.staleCommits,
    itemsDone: found.itemsDone,
    failovers: run.failovers,
    lostWrites: found.lostWrites.length,
    failoverDuplicates: found.failoverDuplicates.length,
    problems: run.problems,
    latenessMs: run.latenessMs,
    recoveryMs: run.recoveryMs,
    bound: bound(effectiveFaults),
    faultsByKind,
    points,
    notRun: run.notRun,
    controls,
  };
}

/** The first runs of each kind, by name. */
function detailsOf(found) {
  const kinds = Object.entries(found).filter(([, texts]) => Array.isArray(texts) && texts.length > 0);
  return Object.fromEntries(kinds.map(([name, texts]) => [name, texts.slice(0, SHOWN)]));
}

const VIOLATIONS = [
  "duplicates",
  "gaps",
  "overlaps",
  "limits",
  "frozen",
  "paused",
  "stale",
  "items",
  "pending",
  "early",
  "counters",
  "regressions",
  "indexes",
];

/**
 * Reasons why this run proves nothing; empty if it is a proof.
 * @returns {string[]}
 */
export function verdict(report) {
  const reasons = VIOLATIONS.filter((name) => report[name] > 0).map((name) => `${report[name]} ${name}`);
  reasons.push(...report.problems);
  if (report.occurrences === 0) reasons.push("nothing was enqueued: this run proves nothing");
  const compared = [
    "nominalTimes",
    "pairsOfRuns",
    "runsAtLimit",
    "frozenSkips",
    "itemsDone",
    "runsAfterEdits",
    "staleCommits",
  ];
  const missing = compared.filter((name) => report[name] === 0);
  if (missing.length > 0)
    reasons.push(`nothing was compared (${missing.join(", ")}): this run proves nothing`);
  if (report.effectiveFaults === 0) reasons.push("no fault was effective: this run proves nothing");
  for (const [name, { caught }] of Object.entries(report.controls)) {
    if (!caught) reasons.push(`the control "${name}" was not caught: this battery proves nothing`);
  }
  return reasons;
}

const SHOWN = 20;

export function textOf(run, report) {
  const lines = [
    `seed ${report.seed}, ${report.topology}, ${report.nodes} nodes, ${report.seconds} s: ${report.occurrences} occurrences, ${run.edits} edits, ${run.looks} looks`,
    "",
    ...table(
      ["fault", "injected", "effective"],
      Object.entries(report.faultsByKind).map(([kind, { faults, effective }]) => [kind, faults, effective]),
    ),
    `${report.faults} faults, ${report.effectiveFaults} of them effective: they hit a claim, a settle or a reconcile half way, or made commands fail`,
  ];
  if (Object.keys(report.points).length > 0) {
    const kinds = [...new Set(Object.values(report.points).flatMap((hits) => Object.keys(hits)))];
    const rows = Object.entries(report.points).map(([point, hits]) => [
      point,
      ...kinds.map((kind) => hits[kind] ?? ""),
    ]);
    lines.push("", ...table(["point", ...kinds.map((kind) => kind.replace(/ at a point$/, ""))], rows));
  }
  if (report.notRun.length > 0)
    lines.push(
      "",
      `not run here (libfaketime is missing, or this Redis does not bear it): ${report.notRun.join(", ")}`,
    );
  lines.push(
    "",
    `enqueued ${ms(report.latenessMs.p50)} after due (median), ${ms(report.latenessMs.p99)} (p99), at most ${ms(report.latenessMs.max)}`,
  );
  for (const [kind, took] of Object.entries(report.recoveryMs))
    lines.push(`recovered from "${kind}" within ${ms(took)}`);
  lines.push(
    "",
    `${report.nominalTimes} nominal times checked, ${report.pairsOfRuns} pairs of runs compared, ${report.runsAtLimit} runs took the last place of their owner`,
    `${report.freezes} freezes, with ${report.frozenSkips} entries in ledgers, ${report.itemsDone} items of fan-outs`,
    `${report.staleCommits} commits refused because the task had changed, ${report.runsAfterEdits} runs after an edit of their payload`,
    ...VIOLATIONS.map((name) => `${name}: ${report[name]}`),
    `undecided (the Redis clock went back in between, or a look of the reconciler was not heard of): ${report.undecided}`,
  );
  lines.push(
    `failovers: ${report.failovers.ordered} that the plan ordered, ${report.failovers.others} others`,
    `failover duplicates, each of a write that Redis had acknowledged and lost: ${report.failoverDuplicates} of ${report.lostWrites} lost writes`,
  );
  const details = Object.entries(report.details).flatMap(([name, texts]) =>
    texts.map((text) => `  ${name}: ${text}`),
  );
  lines.push(...details, "");
  for (const [name, { caught, found }] of Object.entries(report.controls)) {
    lines.push(`control "${name}": ${caught ? `caught, ${found}` : "NOT CAUGHT"}`);
  }
  const reasons = verdict(report);
  lines.push(
    "",
    reasons.length === 0
      ? `no failure in ${report.effectiveFaults} effective faults: with 95 % confidence less than ${(100 * report.bound).toFixed(2)} % of such faults break a promise`
      : `FAILED: ${reasons.join("; ")}`,
  );
  return lines.join("\n");
}

const ms = (value) => `${Math.round(value)} ms`;

function table(head, rows) {
  return tableOf([head, ...rows].map((row) => row.map(String)));
}
