import type { Register } from "../command.js";
import { writeApp } from "../template.js";

export const registerInit: Register = (program, out) => {
  program
    .verb(
      "init",
      "writes an app with one task, a worker and a test",
      "Writes an app in TypeScript into a new or empty folder: one task, its worker, and a test in virtual time.",
    )
    .argument("<folder>", "its name is the app's; . for this one")
    .action(async (folder: string) => {
      writeApp(folder);
      const steps = [
        ...(folder === "." ? [] : [`cd ${folder}`]),
        `npm install    # with pnpm first: echo 'allowBuilds: { esbuild: false, msgpackr-extract: false }' > pnpm-workspace.yaml`,
        "npm run dev    # a Redis, a node, the console, and a worker that starts again when you save",
        "npm test       # the schedule in virtual time",
      ];
      await out.write(
        `wrote src/tasks.ts, src/main.ts and test/tasks.test.ts. Next:\n\n${steps.map((step) => `  ${step}\n`).join("")}`,
      );
    });
};
