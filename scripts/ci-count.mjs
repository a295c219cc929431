// Adds up the results of `npm test`, `npm run test:long` and `npm run check`; its arguments are their exit codes.
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { root, state } from "./lib/project.mjs";

const [testCode, longCode, checkCode] = process.argv.slice(2).map(Number);
const parts = [
  ["npm test", testCode, read("test-report.json", tests)],
  ["npm run test:long", longCode, read("test-long-report.json", tests)],
  ["npm run check", checkCode, read("check-report.json", (report) => ({ ...report, skipped: 0 }))],
].map(([command, code, count]) => {
  // An exit code without a counted failure (no report, an error outside all tests) is a failure too.
  const failed = count.failed === 0 && code !== 0 ? 1 : count.failed;
  return { command, ...count, failed };
});

// Once more at the end, because the output of all tests is long.
for (const part of parts) {
  for (const failure of part.failures ?? []) console.log(`FAILED ${failure}\n`);
}
for (const part of parts) console.log(`${part.command}: ${sentence(part)}`);
const sum = (field) => parts.reduce((total, part) => total + part[field], 0);
const total = { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
console.log(sentence(total));
process.exitCode = total.failed === 0 ? 0 : 1;

function tests(report) {
  const failures = report.testResults.flatMap(failuresOf);
  return {
    passed: report.numPassedTests,
    failed: failures.length,
    skipped: report.numPendingTests + report.numTodoTests,
    failures,
  };
}

/** The failed tests of a file. One that cannot be loaded has no tests that could fail, so it is a failure itself. */
function failuresOf(file) {
  const path = relative(root, file.name);
  if (isBrokenFile(file)) return [`${path}\n${file.message}`];
  return file.assertionResults
    .filter((test) => test.status === "failed")
    .map((test) => `${path} > ${test.fullName}\n${test.failureMessages.join("\n")}`);
}

function read(file, count) {
  try {
    return count(JSON.parse(readFileSync(join(state, file), "utf8")));
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

function isBrokenFile({ status, assertionResults }) {
  return status === "failed" && !assertionResults.some((test) => test.status === "failed");
}

function sentence({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
