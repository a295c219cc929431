import { run } from "../run.mjs";
import { newsletter } from "./newsletter.mjs";

const subscribers = { list: async () => ["ada@example.com", "grace@example.com"] };
const mailer = {
  async send(/** @type {string} */ to, /** @type {number} */ issue) {
    console.log(`issue ${issue} to ${to}`);
  },
};
const type = newsletter(subscribers, mailer);

await run([type], (client) => client.enqueue(type, { issue: 1 }));
