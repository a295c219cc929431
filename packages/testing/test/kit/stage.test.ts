import { expect, it } from "vitest";
import { Pulse } from "../../src/kit/pulse.js";
import { Actor, Stage } from "../../src/kit/stage.js";

function stage() {
  const time = { now: 0 };
  return { time, stage: new Stage(new Pulse(), () => time.now) };
}

it("a timer fires at its time, unless it is cancelled or its actor is frozen", async () => {
  const { time, stage: scene } = stage();
  const fired: string[] = [];
  scene.after(20, () => fired.push("late"));
  scene.after(10, () => fired.push("early"));
  scene.after(10, () => fired.push("taken back"))();
  const actor = new Actor("killed");
  void scene.perform(actor, () => void scene.after(5, () => fired.push("of the killed")));
  scene.enter(actor);
  await new Promise((resolve) => setImmediate(resolve));
  scene.freeze([actor]);

  expect(scene.wake()).toBe(false);
  expect(scene.nextWake).toBe(10);
  time.now = 30;
  while (scene.wake());
  expect(fired).toEqual(["early", "late"]);
  expect(scene.nextWake).toBeUndefined();
});

it("an actor that sets a timer is not asleep, and the timer acts in its name", async () => {
  const { time, stage: scene } = stage();
  const actor = new Actor("handler");
  let asked: Actor | undefined;
  void scene.perform(actor, async () => {
    scene.after(5, () => {
      asked = scene.current;
    });
    await new Promise(() => {});
  });
  scene.enter(actor);
  await new Promise((resolve) => setImmediate(resolve));
  expect(scene.acting).toEqual([actor]);
  time.now = 5;
  scene.wake();
  expect(asked).toBe(actor);
});

it("an actor acts from its turn to its end, and not while it sleeps", async () => {
  const { time, stage: scene } = stage();
  const actor = new Actor("handler", { queue: "q", id: "1" });
  const end = scene.perform(actor, () => scene.sleep(10));
  expect([scene.waiting, scene.acting]).toEqual([[actor], []]);
  expect(scene.of("q", "1")).toBe(actor);
  scene.enter(actor);
  expect([scene.waiting, scene.acting]).toEqual([[], [actor]]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(scene.acting).toEqual([]);
  time.now = 10;
  scene.wake();
  expect(scene.acting).toEqual([actor]);
  await end;
  expect(scene.of("q", "1")).toBeUndefined();
});
