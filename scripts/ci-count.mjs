// Adds up what `npm test` and `npm run check` left behind; its arguments are their exit codes.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { state } from "./lib/project.mjs";

const [testCode, checkCode] = process.argv.slice(2).map(Number);
const tests = read("test-report.json", (report) => ({
  passed: report.numPassedTests,
  // A file that cannot even be loaded has no tests that could fail.
  failed: report.numFailedTests + report.testResults.filter(isBrokenFile).length,
  skipped: report.numPendingTests + report.numTodoTests,
}));
const checks = read("check-report.json", (report) => ({ ...report, skipped: 0 }));

const passed = tests.passed + checks.passed;
const skipped = tests.skipped + checks.skipped;
// An exit code without a counted failure (no report, an error outside all tests) is a failure still.
const failed = atLeastOne(tests.failed, testCode) + atLeastOne(checks.failed, checkCode);

console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed === 0 ? 0 : 1;

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

function atLeastOne(failed, code) {
  return failed === 0 && code !== 0 ? 1 : failed;
}
