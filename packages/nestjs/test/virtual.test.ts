import "reflect-metadata";
import { Carillon, CarillonModule, Task, TaskHandler } from "@carillon/nestjs";
import { Cron, CronExpression, Interval, Timeout } from "@carillon/nestjs/schedule";
import { CarillonTestingModule } from "@carillon/nestjs/testing";
import { Client, type Context, defineTask } from "@carillon/sdk";
import { parseTask } from "@carillon/sdk/schedule";
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Injectable,
  Module,
  type NestInterceptor,
  type Provider,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from "@nestjs/common";
import { REQUEST } from "@nestjs/core";
import { Test } from "@nestjs/testing";
import { tap } from "rxjs";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { sharedRedis } from "../../../test/helpers.js";

const redis = sharedRedis();

const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
});

/** Opens an app with these providers in virtual time. */
async function open(providers: Provider[], imports: Type[] | ReturnType<typeof CarillonModule.forRoot>[]) {
  @Module({ imports, providers })
  class AppModule {}
  const opened = await CarillonTestingModule.open(Test.createTestingModule({ imports: [AppModule] }), {
    redis,
  });
  closes.push(opened.close);
  await opened.module.init();
  return opened;
}

const report = defineTask("report", { queue: "reports", payload: z.object({ tenant: z.string() }) });

test("a method runs at its times; one with a type runs for each of its tasks, and for those that are put", async () => {
  @Injectable()
  class Reports {
    readonly done: string[] = [];
    constructor(@Inject(Client) readonly client: Client) {}

    @Task({ id: "nightly", schedule: { cron: "0 3 * * *" } })
    nightly() {
      this.done.push(new Date().toISOString());
    }

    @TaskHandler(report)
    @Task({ id: "acme", schedule: { cron: "0 4 * * *" }, payload: { tenant: "acme" } })
    @Task({ id: "globex", schedule: { cron: "0 5 * * *" }, payload: { tenant: "globex" } })
    build({ tenant }: { tenant: string }, { occurrence }: Context) {
      this.done.push(`${tenant} as ${occurrence.task}`);
    }
  }
  const { kit, module } = await open([Reports], [CarillonModule.forRoot({ queue: "jobs" })]);
  const { done, client } = module.get(Reports);
  await kit.advance("1 day");
  expect(done).toEqual(["2026-01-01T03:00:00.000Z", "acme as acme", "globex as globex"]);
  await client.enqueue(report, { tenant: "initech" }, { id: "once" });
  await kit.advance(0);
  expect(done.at(-1)).toBe("initech as once");
  expect(await module.get(Carillon).readiness()).toEqual({ ready: true });
});

test("schedules and other fields of tasks come from injected configuration", async () => {
  class Config {
    readonly nightly = "30 1 * * *";
  }
  @Module({ providers: [Config], exports: [Config] })
  class ConfigModule {}
  @Injectable()
  class Reports {
    @Task({ id: "nightly" })
    nightly() {}
    @Task({ id: "paused", schedule: { every: "1h" } })
    paused() {}
  }
  const { kit } = await open(
    [Reports],
    [
      CarillonModule.forRootAsync({
        imports: [ConfigModule],
        inject: [Config],
        useFactory: ({ nightly }: Config) => ({
          queue: "jobs",
          tasks: { nightly: { schedule: { cron: nightly } }, paused: { enabled: false } },
        }),
      }),
    ],
  );
  await kit.advance("1 day");
  await kit.expect("nightly").firedAt(["2026-01-01T01:30:00Z"]);
  await kit.expect("paused").fired(0).state("paused");
});

test("guards, interceptors and filters of a method or its class apply", async () => {
  const seen: string[] = [];
  @Injectable()
  class Trace implements NestInterceptor {
    intercept(context: ExecutionContext, next: CallHandler) {
      const [, { attempt }] = context.getArgs<[unknown, Context]>();
      seen.push(`${context.getType()} ${context.getHandler().name} ${attempt}`);
      return next.handle().pipe(tap({ complete: () => seen.push("completed") }));
    }
  }
  class Closed implements CanActivate {
    canActivate = () => false;
  }
  @Catch(RangeError)
  class Lenient implements ExceptionFilter {
    catch(error: RangeError, _host: ArgumentsHost) {
      return { forgiven: error.message };
    }
  }
  @Injectable()
  @UseInterceptors(Trace)
  class Reports {
    @Task({ id: "traced", schedule: { cron: "0 1 * * *" } })
    traced() {
      return { pages: 3 };
    }
    @UseGuards(Closed)
    @Task({ id: "guarded", schedule: { cron: "0 2 * * *" } })
    guarded() {}
    @UseFilters(Lenient)
    @Task({ id: "filtered", schedule: { cron: "0 3 * * *" } })
    filtered() {
      throw new RangeError("too many");
    }
  }
  const { kit } = await open([Reports, Trace], [CarillonModule.forRoot({ queue: "jobs" })]);
  await kit.advance("1 day");
  expect(seen).toEqual(["carillon traced 1", "completed", "carillon filtered 1"]);
  const last = async (id: string) => (await kit.client.runs.list(id))[0];
  expect(await last("traced")).toMatchObject({ outcome: "succeeded", result: { pages: 3 } });
  expect(await last("guarded")).toMatchObject({
    outcome: "failed",
    error: expect.stringContaining("Forbidden"),
  });
  expect(await last("filtered")).toMatchObject({ outcome: "succeeded", result: { forgiven: "too many" } });
});

test("a provider of the scope of a request is made for each attempt, with its context as REQUEST", async () => {
  const made: Session[] = [];
  @Injectable()
  class Session {
    constructor(@Inject(REQUEST) readonly context: Context) {
      made.push(this);
    }
  }
  Reflect.defineMetadata("scope:options", { scope: 2 }, Session);
  @Injectable()
  class Reports {
    constructor(@Inject(Session) readonly session: Session) {}
    @Task({ id: "hourly", schedule: { every: "1h" } })
    hourly(_payload: undefined, { idempotencyKey }: Context) {
      return { same: this.session.context.idempotencyKey === idempotencyKey };
    }
  }
  const { kit } = await open([Reports, Session], [CarillonModule.forRoot({ queue: "jobs" })]);
  await kit.advance("2h");
  expect(new Set(made).size).toBe(2);
  for (const run of await kit.client.runs.list("hourly")) expect(run.result).toEqual({ same: true });
});

test("the decorators of @nestjs/schedule work with one import changed", async () => {
  @Injectable()
  class TasksService {
    readonly calls: string[] = [];
    @Cron("45 * * * * *", { name: "at-45", timeZone: "UTC" })
    handleCron() {
      this.calls.push("cron");
    }
    @Cron(CronExpression.EVERY_30_SECONDS, { name: "half-minutes", disabled: true })
    handleDisabled() {}
    @Interval("tens", 10_000)
    handleInterval() {
      this.calls.push("interval");
    }
    @Timeout("soon", 5_000)
    handleTimeout(again = "once") {
      this.calls.push(`timeout ${again}`);
    }
  }
  const { kit, module } = await open([TasksService], [CarillonModule.forRoot({ queue: "jobs" })]);
  await kit.advance("1m");
  const { calls } = module.get(TasksService);
  expect(calls.filter((call) => call === "cron")).toHaveLength(1);
  expect(calls.filter((call) => call === "interval")).toHaveLength(6);
  expect(calls.filter((call) => call.startsWith("timeout"))).toEqual(["timeout once"]);
  await kit.expect("half-minutes").fired(0).state("paused");
});

test("each of the expressions of @nestjs/schedule is a schedule", async () => {
  for (const cron of Object.values(CronExpression))
    parseTask({ id: "a", type: "a", queue: "a", schedule: { cron } });
  const names = Object.keys(CronExpression);
  expect(names).toHaveLength(83);
  expect(CronExpression.EVERY_12_HOURS).toBe("0 */12 * * *");
  expect(CronExpression.MONDAY_TO_FRIDAY_AT_11PM).toBe("0 23 * * 1-5");
});
