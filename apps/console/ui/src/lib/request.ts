/** Method, path and body of an operation, as it declares them. */
export interface Route {
  readonly http: string;
  readonly body?: string;
}

/** Parameters of an address; a list repeats its parameter. */
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** The request that calls an operation: the path names some fields of its input, query or body the others. */
export function requestOf({ http, body: whole }: Route, input: object) {
  const [method, template] = http.split(" ") as [string, string];
  const rest: Record<string, unknown> = { ...input };
  const path = template.replace(/:(\w+)/g, (_, part: string) => {
    const { [part]: value } = rest;
    delete rest[part];
    return inPath(String(value));
  });
  if (method === "GET") return { method, path, query: rest as Query };
  if (whole === undefined) return { method, path, query: {}, body: rest };
  const { [whole]: body, ...query } = rest;
  return { method, path, query: query as Query, body };
}

/** `?a=1&b=2`, or nothing. */
export function searchOf(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams();
  for (const [name, value] of given) for (const one of [value].flat()) search.append(name, String(one));
  return search.size > 0 ? `?${search}` : "";
}

/** Changes parameters of the page's address; undefined or "" removes one. Numbers are UTC ms. */
export const changed =
  (change: Readonly<Record<string, string | number | undefined>>) => (was: URLSearchParams) => {
    const now = new URLSearchParams(was);
    for (const [name, value] of Object.entries(change)) {
      if (value === undefined || value === "") now.delete(name);
      else now.set(name, typeof value === "number" ? String(Math.round(value)) : value);
    }
    return now;
  };

/** A time in the page's address, UTC ms. */
export function timeIn(params: URLSearchParams, name: string): number | undefined {
  const time = Number(params.get(name) || Number.NaN);
  return Number.isSafeInteger(time) ? time : undefined;
}

export function inPath(part: string): string {
  // The router decodes no `%40`.
  return encodeURIComponent(part).replace("%40", "@");
}
