import type { TokenInput } from "@carillon/sdk";
import { z } from "zod";
import { CREATED_TOKEN, TOKENS } from "./answers.js";
import { endpoint, ok } from "./route.js";

const text = z.string("not a text");
const TOKEN = z.strictObject({
  name: text,
  role: text,
  owners: z.array(text, "not a list of texts").exactOptional(),
  expires: z.union([z.string(), z.number()], "not a time").exactOptional(),
});

/** Named tokens. The guard lets only admins in. */
export const tokenEndpoints = {
  list: endpoint({ answer: TOKENS }, async ({ client }) => ok({ tokens: await client.tokens.list() })),
  // The client checks the role.
  add: endpoint({ body: TOKEN, answer: CREATED_TOKEN, status: [201] }, async ({ client, body }) => {
    return { status: 201, body: await client.tokens.create(body as TokenInput) };
  }),
  remove: endpoint({}, async ({ client, path }) => {
    await client.tokens.revoke(path["name"]!);
    return { status: 204 };
  }),
};
