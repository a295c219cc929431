import { destination, webhookUrl } from "./destination.js";
import { secret } from "./secret.js";

/** Any program: one alert is a body of its own, alerts that were collected are a digest. */
export const json = destination({
  carrier: "http",
  implied: true,
  fields: { url: secret(webhookUrl) },
  endpoint: ({ url }) => url,
  bodies: ({ namespace, alerts, at }) => [
    (at === undefined ? alerts[0] : { kind: "digest", namespace, at, alerts }) as never,
  ],
});
