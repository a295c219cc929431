import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
// Renews the module with the texts of the Lua files: an edited one is tested as it is now.
import "./packages/store/lua/generate.mjs";

// "carillon-source" is the condition in our packages' exports that leads to src/*.ts: tests need no build.
const conditions = ["carillon-source", "node", "development|production"];

/**
 * The name of a test file says when and how it runs: `x.test.ts` in `npm test`, `x.long.test.ts` and, ahead of them, `x.longest.test.ts` in
 * `npm run test:long`, `x.nightly.test.ts` in `npm run test:builders`. One that replaces modules, or counts all timers, is named
 * `x.isolated.test.ts` or `x.long.isolated.test.ts` and gets a process; all others share a few, which saves loading the modules for each file.
 */
const named = (ends: string) =>
  ["packages/*/{src,test}", "apps/*/test", "test"].map((folder) => `${folder}/**/*${ends}.test.ts`);

/** Started last, the longest files would end long after all others. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLongest = ({ moduleId }: TestSpecification) => moduleId.includes(".longest.");
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

const long = {
  testTimeout: 1_200_000,
  sequence: { groupOrder: 1 },
};

export default defineConfig({
  // As NestJS wants them; only its tests have decorators.
  oxc: { decorator: { legacy: true } },
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["carillon-source", "node"] } },
  test: {
    pool: "forks",
    // All projects, both batteries and later runs share what is transformed.
    experimental: { fsModuleCache: true },
    // Tests make much garbage that dies young: a larger young generation saves a tenth of their time.
    execArgv: ["--max-semi-space-size=64"],
    sequence: { sequencer: LongestFirst },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 10_000,
    projects: [
      {
        extends: true,
        test: {
          name: "shared",
          include: named(""),
          exclude: named(".{long,longest,nightly,isolated,long.isolated,longest.isolated}"),
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: "isolated", include: named(".isolated"), exclude: named(".{long,longest}.isolated") },
      },
      {
        extends: true,
        test: { ...long, name: "long", include: named(".{long,longest}"), isolate: false },
      },
      { extends: true, test: { ...long, name: "long-isolated", include: named(".{long,longest}.isolated") } },
      { extends: true, test: { ...long, name: "nightly", include: named(".nightly"), isolate: false } },
    ],
  },
});
