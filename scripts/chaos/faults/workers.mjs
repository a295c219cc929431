// Faults of workers: killed during a job, twice; frozen until their locks have expired; replies lost at the start and the end of a run.
import { pause } from "../../lib/nodes.mjs";
import { restart } from "./nodes.mjs";

const event = (child, what, within) =>
  new Promise((resolve) => {
    const off = child.on(what, (heard) => {
      clearTimeout(timer);
      resolve(heard);
    });
    const timer = setTimeout(() => {
      off();
      resolve(undefined);
    }, within);
  });

export const workerFaults = [
  {
    kind: "worker killed twice in mid-job",
    scope: "worker",
    ends: true,
    async run({ target, dice, within }) {
      const runs = [];
      for (let time = 0; time < 2; time++) {
        const started = await event(target, "started", within);
        if (!started) break;
        await target.kill();
        runs.push(started.run);
        await restart(target, dice);
        await target.ready;
      }
      return { effective: runs.length === 2, note: runs.join(", ") };
    },
  },
  {
    kind: "worker frozen beyond its locks",
    scope: "worker",
    async run({ target, within, settings }) {
      const started = await event(target, "started", within);
      if (!started) return { effective: false };
      target.freeze();
      await pause(settings.lockMs * 2.2);
      target.thaw();
      return { effective: true, note: started.run };
    },
  },
  ...["turn", "start-run", "settle-run"].flatMap((script) =>
    ["die", "lose"].flatMap((what) =>
      ["before", "after"].map((when) => ({
        kind: what === "die" ? "worker dies at a point" : "worker's reply lost at a point",
        point: `${when} ${script}`,
        scope: "worker",
        waits: true,
        ends: what === "die",
        async run({ target, dice, within, hit }) {
          const heard = await target.order({ at: `${when} ${script}`, do: what }, within);
          if (!heard) return { effective: false, happened: false };
          await hit(async () => {
            if (what === "die") await restart(target, dice);
          });
          return { effective: true, note: `${when} ${script}` };
        },
      })),
    ),
  ),
];
