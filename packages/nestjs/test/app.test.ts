import "reflect-metadata";
import {
  Carillon,
  CarillonHealthIndicator,
  CarillonModule,
  type CarillonOptions,
  Task,
  TaskHandler,
} from "@carillon/nestjs";
import { Cron, Timeout } from "@carillon/nestjs/schedule";
import { operatorOf } from "@carillon/ops";
import { Client, type Context, defineTask } from "@carillon/sdk";
import { eventually, freePort, startRedis } from "@carillon/testing";
import {
  type INestApplication,
  Inject,
  Injectable,
  Module,
  type OnModuleDestroy,
  Scope,
  type Type,
} from "@nestjs/common";
import { NestFactory, REQUEST } from "@nestjs/core";
import { Redis } from "ioredis";
import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { ownRedis } from "../../../test/helpers.js";

// The last test counts its connections.
const redis = ownRedis({ appendonly: true });

let namespace = 0;
const apps: INestApplication[] = [];
/** Lines of Nest's logger, of all apps of a test. */
const lines: string[] = [];
const write = (message: unknown) => void lines.push(String(message));
const logger = { log: write, warn: write, error: write, debug: write };
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  lines.length = 0;
});

const shared = (): CarillonOptions => ({
  connection: redis.url,
  namespace: `n${++namespace}`,
  queue: "jobs",
});

/** A replica with HTTP that listens. */
async function replica(options: CarillonOptions, providers: Type[]): Promise<INestApplication> {
  @Module({ imports: [CarillonModule.forRoot(options)], providers })
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger, abortOnError: false });
  apps.push(app);
  await app.listen(0, "127.0.0.1");
  return app;
}

async function close(app: INestApplication): Promise<void> {
  apps.splice(apps.indexOf(app), 1);
  await app.close();
}

/** A class with a task that runs each second, and the times of its runs. */
function eachSecond() {
  const ran: number[] = [];
  @Injectable()
  class Reports {
    @Task({ id: "seconds", schedule: { every: "1s" }, catchUp: "all", overlap: "allow" })
    seconds(_payload: undefined, { occurrence }: Context) {
      ran.push(occurrence.nominal);
    }
  }
  return { ran, Reports };
}

test("each occurrence of a scheduled method runs on one of three replicas", async () => {
  const { ran, Reports } = eachSecond();
  const options = shared();
  for (const _ of [1, 2, 3]) await replica(options, [Reports]);
  await eventually(() => ran.length >= 3);
  expect(ran).toEqual([...new Set(ran)]);
});

test("a rolling restart misses and doubles no occurrence", async () => {
  const { ran, Reports } = eachSecond();
  const options = shared();
  const runs = (count: number) => eventually(() => ran.length >= count);
  let [first, second] = [await replica(options, [Reports]), await replica(options, [Reports])];
  await runs(1);
  for (const count of [2, 3]) {
    const next = await replica(options, [Reports]);
    await close(first);
    [first, second] = [second, next];
    await runs(count);
  }
  const times = ran.toSorted((a, b) => a - b);
  expect(times).toEqual(times.map((_, i) => (times[0] as number) + i * 1_000));
});

test("the app listens while Redis is down; later it puts the tasks, then starts node and worker", async () => {
  @Injectable()
  class Reports {
    @Task({ id: "bell", schedule: { every: "1h" } })
    bell() {}
  }
  const port = await freePort();
  const options = { connection: `redis://127.0.0.1:${port}`, queue: "jobs", client: { connectTimeout: 100 } };
  const spy = vi.spyOn(process, "listenerCount").mockReturnValue(0);
  const app = await replica(options, [Reports]);
  spy.mockRestore();
  const health = app.get(CarillonHealthIndicator);
  await eventually(async () =>
    expect(await health.isHealthy()).toMatchObject({
      carillon: { status: "down", reason: "REDIS_UNAVAILABLE" },
    }),
  );
  const late = await startRedis({ appendonly: true, port });
  try {
    await eventually(async () => expect(await health.isHealthy("jobs")).toEqual({ jobs: { status: "up" } }));
    const client = app.get(Client);
    expect((await client.get("bell")).state).toBe("scheduled");
    await client.trigger("bell");
    await eventually(async () => expect((await client.runs.list("bell"))[0]?.outcome).toBe("succeeded"));
    await close(app);
  } finally {
    await late.stop();
  }
  const order = [
    "nothing handles SIGTERM",
    "the tasks could not be put",
    "node is running",
    "worker is running",
  ];
  const places = order.map((text) => lines.findIndex((line) => line.startsWith(text)));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places[0]).toBeGreaterThanOrEqual(0);
});

test("close waits for the run, then the providers that it uses are destroyed, and no connection stays", async () => {
  const events: string[] = [];
  @Injectable()
  class Database implements OnModuleDestroy {
    onModuleDestroy() {
      events.push("database closed");
    }
  }
  @Module({ providers: [Database], exports: [Database] })
  class DatabaseModule {}
  @Injectable()
  class Reports {
    constructor(@Inject(Client) readonly client: Client) {}
    @Task({ id: "long", schedule: { every: "1h" } })
    async long() {
      events.push("run started");
      const stopping = { ready: false, reason: "STOPPING", why: "stopping" };
      await eventually(async () => expect(await app.get(Carillon).readiness()).toEqual(stopping));
      events.push("run ended");
    }
  }
  @Module({ imports: [DatabaseModule, CarillonModule.forRoot(shared())], providers: [Reports, Database] })
  class AppModule {}
  const spy = vi.spyOn(process, "listenerCount").mockReturnValue(1);
  const app = await NestFactory.create(AppModule, { logger });
  await app.listen(0, "127.0.0.1");
  await eventually(() => app.get(Client).trigger("long"));
  spy.mockRestore();
  await eventually(() => events.length === 1);
  await app.close();
  expect(events).toEqual(["run started", "run ended", "database closed", "database closed"]);
  expect(lines.filter((line) => line.includes("SIGTERM"))).toEqual([]);
  const own = new Redis(redis.url);
  await eventually(async () =>
    expect(
      String(await own.client("LIST"))
        .trim()
        .split("\n"),
    ).toHaveLength(1),
  );
  own.disconnect();
});

test("boot reports all faults at once", async () => {
  const report = defineTask("report", { queue: "reports", payload: z.object({ tenant: z.string() }) });
  @Injectable()
  class Reports {
    @Task({ id: "", schedule: { every: "1h" } })
    unnamed() {}
    @Task({ id: "never", schedule: { cron: "0 25 * * *" } })
    never() {}
    @Task({ id: "unscheduled" })
    unscheduled() {}
    @Task({ id: "twice", schedule: { every: "1h" } })
    once() {}
    @Task({ id: "twice", schedule: { every: "1h" } })
    twice() {}
    @TaskHandler(report)
    @Task({ id: "payload", schedule: { every: "1h" }, payload: { tenant: 5 } })
    build(_payload: { tenant: string }) {}
    @Task({ id: "one", schedule: { every: "1h" } })
    @Task({ id: "two", schedule: { every: "1h" } })
    both() {}
    @Cron("* * * * *")
    cron() {}
    @Timeout(5)
    timeout() {}
  }
  const options = {
    ...shared(),
    worker: { concurrency: 0 },
    node: { grace: "x" },
    stopWithin: "soon",
    que: 1,
    set: "",
    client: { owner: "acme" },
  };
  const error = await replica({ ...options, tasks: { other: {} } }, [Reports]).catch((fault) => fault);
  expect(error.code).toBe("INVALID_OPTION");
  const [head, ...faults] = String(error.message).split("\n- ");
  expect(head).toBe("15 faults in the tasks of this app:");
  expect(faults.map((fault) => fault.split(":").slice(0, 2).join(":"))).toEqual([
    "Reports.unnamed: id",
    "Reports.never: schedule.cron",
    "Reports.unscheduled: schedule",
    "Reports.twice: Reports.once has the type twice too. Use another id.",
    "Reports.build: payload",
    "Reports.both: several @Task. Add @TaskHandler with the type that they share.",
    "Reports.cron: @Cron",
    "Reports.timeout: @Timeout",
    "options.tasks.other: no @Task has this id.",
    "options.que: there is no such option.",
    "options.set: missing. Give `set` or `queue`.",
    "options.client.owner: the set of an app spans owners. Use client.forOwner in services.",
    expect.stringMatching(/^options.stopWithin: "soon" is not a duration/),
    "options.node: grace",
    "options.worker: concurrency",
  ]);
});

test("a module that Nest would not start is refused", async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Tenant {
    constructor(@Inject(REQUEST) readonly request: unknown) {}
  }
  @Module({ providers: [Tenant], exports: [Tenant] })
  class TenantModule {}
  const useFactory = () => ({ queue: "jobs" });
  const imports = [TenantModule];
  const refused = async (...modules: NonNullable<Parameters<typeof Module>[0]["imports"]>) => {
    @Module({ imports: modules })
    class AppModule {}
    const created = NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    return created.catch((error) => error.message);
  };
  expect(await refused(CarillonModule.forRootAsync({ imports, inject: [Tenant], useFactory }))).toMatch(
    "inject: forRootAsync injects a provider of the scope of a request.",
  );
  expect(
    await refused(CarillonModule.forRoot({ queue: "a" }), CarillonModule.forRoot({ queue: "b" })),
  ).toMatch("CarillonModule is imported more than once.");
});

test("a process may only put, only schedule, or only work; a stored task without a method is reported", async () => {
  const ran: string[] = [];
  @Injectable()
  class Reports {
    @Task({ id: "bell", schedule: { every: "1h" } })
    bell() {
      ran.push("bell");
    }
  }
  const options = shared();
  const putter = await replica({ ...options, node: false, worker: false }, [Reports]);
  expect([putter.get(Carillon).node, putter.get(Carillon).worker]).toEqual([undefined, undefined]);
  const client = putter.get(Client);
  await eventually(() => client.get("bell"));
  await eventually(async () => expect(await putter.get(Carillon).readiness()).toEqual({ ready: true }));
  expect(lines).toContainEqual(expect.stringContaining("NO_WORKER"));
  const worker = await replica({ ...options, node: false, sync: false }, [Reports]);
  await eventually(() => client.trigger("bell"));
  await eventually(() => ran.length === 1);
  expect(worker.get(Carillon).worker?.queues).toEqual(["jobs"]);

  const old = { id: "old", type: "old", queue: "jobs", schedule: { every: "1h" } } as const;
  await operatorOf(client).sets.apply({ set: "jobs", tasks: [old], keep: true });
  const only = { ...options, node: false, worker: false };
  await replica(only, [Reports]);
  await eventually(() =>
    lines.some((line) => /a stored task has no method.*system\/old.*remove: true/.test(line)),
  );
  expect((await client.get("old")).state).toBe("scheduled");
  await replica({ ...only, set: { remove: true } }, [Reports]);
  await eventually(async () => expect((await client.get("old")).state).toBe("finished"));
});

test("a replica of an older version brings no task back, and still works", async () => {
  const { ran, Reports } = eachSecond();
  @Injectable()
  class Old {
    @Task({ id: "gone", schedule: { every: "1h" } })
    gone() {}
  }
  const options = shared();
  const of = (version: string) => ({ ...options, set: { name: "app", version, remove: true } });
  const first = await replica(of("1.9.0"), [Reports, Old]);
  const client = first.get(Client);
  await eventually(() => client.get("gone"));
  const newer = await replica(of("1.10.0"), [Reports]);
  await eventually(async () => expect((await client.get("gone")).state).toBe("finished"));
  await close(newer);
  const again = await replica(of("1.9.0"), [Reports, Old]);
  await eventually(async () => expect(await again.get(Carillon).readiness()).toEqual({ ready: true }));
  expect(lines).toContainEqual(expect.stringMatching(/tasks stay as they are: OLD_VERSION.*1\.10\.0/));
  expect((await client.get("gone")).state).toBe("finished");
  const before = ran.length;
  await eventually(() => ran.length > before);
});
