import { HTTP_OPERATIONS } from "@carillon/ops/internal";

/** The table of all operations: the calls of `operatorOf(client)`, and the routes of the HTTP API. */
export function operations() {
  const fields = (schema, /** @type {readonly string[]} */ parts = []) =>
    Object.entries(schema?.shape ?? {})
      .map(([name, field]) => `\`${name}${field.isOptional() && !parts.includes(name) ? "?" : ""}\``)
      .join(", ");
  const who = { owner: "", local: ", not bound to an owner", namespace: ", not bound to an owner" };
  const rows = HTTP_OPERATIONS.map(({ name, method, path, parts, statuses, operation }) => {
    const { input, output, role, reach, summary } = operation;
    const cells = [
      `\`${method} ${path}\``,
      `\`${name}\``,
      `${role}${who[reach]}`,
      fields(input, parts),
      [statuses.join(" or "), fields(output)].filter(Boolean).join(": "),
      summary,
    ];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return `# Operations

Written by \`npm run docs:api\` from the list of operations in [@carillon/ops](../packages/ops/README.md). Each is a method of \`operatorOf(client)\`, and a
route below \`/api/v1\` of the [HTTP API](http-api.md). Fields with \`?\` may be left out. A read takes them from the query, others from a
JSON body; names in the path are fields too.

| route | method | least role | fields | answer | |
| --- | --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
}
