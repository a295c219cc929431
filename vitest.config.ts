import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
// Renews the module with the texts of the Lua files: an edited one is tested as it is now.
import "./packages/store/lua/generate.mjs";

// "carillon-source" is the condition in our packages' exports that leads to src/*.ts: tests need no build.
const conditions = ["carillon-source", "module", "node", "development|production"];

declare module "vitest" {
  interface ProvidedContext {
    /** Part that a file runs: `short` in `npm test`, `long` in `npm run test:long`. */
    battery: "short" | "long";
  }
}

const ALL = [
  "packages/*/test/**/*.test.ts",
  "packages/ops/src/**/*.test.ts",
  "apps/*/test/**/*.test.ts",
  "test/**/*.test.ts",
];

/** Files that replace modules get a process each. All others share a few processes, which saves loading the modules for each file. */
const ISOLATED = ["**/*.isolated.test.ts"];

/** Short in `npm test`, and in full in `npm run test:long`. */
const BOTH = [
  "test/seeds/{b-mid-claim,d-records}.test.ts",
  "test/seeds/e-items.test.ts",
  "packages/core/test/schedule/cron-parser.test.ts",
];
/** Only in `npm run test:long`: real processes under faults and in each topology, random histories, benches, packed packages, pages. */
const LONG = [
  "test/bench/*.test.ts",
  "test/seeds/{a-nodes,c-nodes,d-crashes,e-console}.test.ts",
  "test/security/logs.test.ts",
  "test/stories/plain-workers.test.ts",
  "test/topologies/*.test.ts",
  "test/chaos/*.test.ts",
  "test/deploy/alerts.test.ts",
  "test/packages/{builders,bundles,consumers}.test.ts",
  "apps/console/test/e2e/*.test.ts",
  "apps/console/test/main.test.ts",
  "apps/scheduler/test/{exactly-once,outages,process}.test.ts",
  "packages/sdk/test/worker/{crash,frozen,refused,stop-without-redis}.test.ts",
  "packages/scheduler/test/{exactly-once,liveness}.test.ts",
  "packages/scheduler/test/model/*.test.ts",
  "packages/store/test/adversary.test.ts",
];
/** The same, for files that replace modules, and settings of BullMQ. */
const LONG_ISOLATED = ["packages/scheduler/test/simulation/*.test.ts"];

/** The longest files: started last, they would end long after all others. */
const SLOWEST = [
  "test/chaos/",
  "test/bench/",
  "test/seeds/a-nodes",
  "test/seeds/c-nodes",
  "test/seeds/d-",
  "scheduler/test/simulation/simulation",
  "console/test/e2e",
];

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification) => SLOWEST.some((path) => moduleId.includes(path));
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

const long = {
  provide: { battery: "long" as const },
  // One fewer: chaos and benches need the cores.
  maxWorkers: 3,
  testTimeout: 1_200_000,
  sequence: { groupOrder: 1 },
};

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["carillon-source", "node"] } },
  test: {
    pool: "forks",
    // More than cores: most tests wait for Redis, or for processes that they start.
    maxWorkers: 4,
    // Tests make much garbage that dies young: a larger young generation saves a tenth of their time.
    execArgv: ["--max-semi-space-size=64"],
    sequence: { sequencer: SlowestFirst },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 10_000,
    provide: { battery: "short" },
    projects: [
      {
        extends: true,
        test: {
          name: "shared",
          include: ALL,
          exclude: [...LONG, ...LONG_ISOLATED, ...ISOLATED],
          isolate: false,
        },
      },
      { extends: true, test: { name: "isolated", include: ISOLATED } },
      {
        extends: true,
        test: { ...long, name: "long", include: [...LONG, ...BOTH], isolate: false },
      },
      { extends: true, test: { ...long, name: "long-isolated", include: LONG_ISOLATED } },
    ],
  },
});
