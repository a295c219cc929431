/** A call of an operation, and the request that makes it. */
export interface Made {
  readonly name: string;
  readonly input: object;
  readonly namespace: string;
  readonly method: string;
  /** The whole address. */
  readonly url: string;
  readonly body?: unknown;
}

/** Texts that make the same call elsewhere, for any operation. None has a token: the shell reads it from its environment. */
export const FORMS = {
  cli: ({ name, input, namespace }: Made) =>
    `carillon --namespace ${namespace} call ${name} ${inShell(JSON.stringify(input))}`,
  curl: ({ method, url, body }: Made) =>
    [
      `curl -X ${method} ${inShell(url)} -H "Authorization: Bearer $CARILLON_TOKEN"`,
      ...(body === undefined
        ? []
        : [`-H 'Content-Type: application/json'`, `-d ${inShell(JSON.stringify(body))}`]),
    ].join(" "),
  sdk: ({ name, input }: Made) =>
    `import { operatorOf } from "@carillon/ops";\n\nawait operatorOf(client).${name}(${JSON.stringify(input, null, 2)});`,
} as const;

/** A text as one word of a POSIX shell. */
function inShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
