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
  // An exit code without a counted failure is a failure too: there is no report, or an error outside of all tests.
  const failures =
    code !== 0 && count.failures.length === 0
      ? [`ended with ${code}, though no test failed: see its output`]
      : count.failures;
  return { command, ...count, failures, failed: failures.length };
});

// Once more at the end, because the output of all tests is long. One line each: their errors stand above.
for (const { command, failures } of parts) {
  for (const failure of failures) console.log(`FAILED ${command}: ${failure}`);
}
for (const part of parts) console.log(`${part.command}: ${sentence(part)}`);
const sum = (field) => parts.reduce((total, part) => total + part[field], 0);
const total = { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
console.log(sentence(total));
process.exitCode = total.failed === 0 ? 0 : 1;

function tests(report) {
  return {
    passed: report.numPassedTests,
    failures: report.testResults.flatMap(failuresOf),
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/** The failed tests of a file. One that cannot be loaded has no tests that could fail, so it is a failure itself. */
function failuresOf(file) {
  const path = relative(root, file.name);
  if (isBrokenFile(file)) return [`${path}: ${firstLine(file.message)}`];
  return file.assertionResults
    .filter((test) => test.status === "failed")
    .map((test) => `${path} > ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
}

function firstLine(text = "") {
  return text.trim().split("\n", 1)[0];
}

function read(file, count) {
  try {
    return count(JSON.parse(readFileSync(join(state, file), "utf8")));
  } catch {
    return { passed: 0, failures: [], skipped: 0 };
  }
}

function isBrokenFile({ status, assertionResults }) {
  return status === "failed" && !assertionResults.some((test) => test.status === "failed");
}

function sentence({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
