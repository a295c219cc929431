import { operatorOf } from "@carillon/ops";
import type { Client, Context } from "@carillon/sdk";
import { defineTask } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import type { Page } from "playwright-core";
import { z } from "zod";

/**
 * Name of everything that has one. The API refuses markup in names, so `disguise` inserts it on the way to the page.
 */
const MARK = "in-disguise";
const MARKUP =
  `<img src=x data-injected onerror="alert(1)"><script data-injected>alert(2)</script>` +
  `<a data-injected href="javascript:alert(3)">'"</a>`;

/** Prints markup; returns it if the payload says so, otherwise throws it. */
export const MARKED_TYPE = defineTask(MARK, {
  queue: MARK,
  payload: z.object({ text: z.string(), ends: z.string() }),
  async handler({ text, ends }: { text: string; ends: string }, { log }: Context) {
    log(text);
    if (ends === "well") return { [text]: text };
    throw new Error(text);
  },
});

/**
 * Stores markup in every field that takes free text.
 * @returns addresses of pages that show it
 */
export async function storeMarkup(client: Client): Promise<Record<string, string>> {
  const name = { queue: MARK, owner: MARK, id: MARK };
  const put = (ends: string) =>
    client.put({
      ...name,
      type: MARK,
      tags: [MARK],
      schedule: { cron: "0 0 1 1 *", except: [{ named: MARK }] },
      description: `${ends}: ${MARKUP}`,
      payload: { text: MARKUP, ends },
    });
  await operatorOf(client).calendars.put({ name: MARK, entries: ["2030-12-25"] });
  await operatorOf(client).sets.apply({ set: MARK, version: MARKUP, tasks: [], keep: true }, { by: MARKUP });
  const runs: string[] = [];
  for (const ends of ["well", "badly"]) {
    await put(ends);
    const { run } = (await client.trigger(name)) as { run: string };
    await eventually(async () => (await client.runs.get(run)).state === "final");
    runs.push(run);
  }
  await client.pause(name, { note: MARKUP });
  await operatorOf(client).queues.pause({ queue: MARK, note: MARKUP });
  await operatorOf(client).freezes.put({ owner: MARK, note: MARKUP });
  await operatorOf(client).silences.put({ owner: MARK, note: MARKUP, until: Date.now() + 3_600_000 });
  return {
    markedTask: `/tasks/${MARK}/${MARK}/${MARK}`,
    markedEdit: `/tasks/${MARK}/${MARK}/${MARK}/edit`,
    returned: `/runs/${runs[0]}`,
    threw: `/runs/${runs[1]}`,
    search: `/tasks?search=${encodeURIComponent(MARKUP)}`,
  };
}

/**
 * Replaces `MARK` by markup in each answer of the API.
 * @returns a function that reads the effect on the open page
 */
export async function disguise(page: Page): Promise<() => Promise<{ injected: unknown; shown: boolean }>> {
  const quoted = JSON.stringify(MARKUP).slice(1, -1);
  const forms = [
    encodeURIComponent(MARKUP),
    new URLSearchParams({ "": MARKUP }).toString().slice(1),
    quoted,
    MARKUP,
  ];
  await page.route(/\/api\/v1\/(?!events)/, async (route) => {
    const request = route.request();
    const back = (text: string) => forms.reduce((all, form) => all.replaceAll(form, MARK), text);
    const url = back(request.url());
    const postData = request.postData();
    const response = await route.fetch({
      url,
      ...(postData === null ? {} : { postData: back(postData) }),
      // The server may end an idle connection just when it is used again.
      maxRetries: 5,
    });
    await route.fulfill({ response, body: (await response.text()).replaceAll(MARK, quoted) });
  });
  return async () => ({
    injected: await page.locator("[data-injected]").count(),
    shown: (await page.evaluate(
      `(document.body.innerText + [...document.querySelectorAll("input, textarea")].map(({ value }) => value))
        .includes("data-injected onerror")`,
    )) as boolean,
  });
}
