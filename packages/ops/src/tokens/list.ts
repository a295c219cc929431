import { z } from "zod";
import { operation } from "../operation.js";
import { token } from "./token.js";

export const listTokens = operation({
  http: "GET /tokens",
  role: "admin",
  reach: "namespace",
  summary: "Lists the named tokens, expired ones too.",
  input: z.strictObject({}),
  output: z.object({ tokens: z.array(token) }),
  async run({ store }) {
    const [tokens, now] = await Promise.all([store.tokens.list(), store.serverTime()]);
    return {
      tokens: tokens.map(({ sha256: _, ...token }) => ({
        ...token,
        owners: token.owners && [...token.owners],
        expired: token.expires !== undefined && token.expires <= now,
      })),
    };
  },
});
