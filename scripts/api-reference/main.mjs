// npm run docs:api: writes docs/api from the declarations that the build made. With --check it writes nothing, and fails
// if the committed files are stale. A workspace of its own, because typedoc needs a TypeScript before 7.
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HTTP_OPERATIONS } from "@carillon/ops/internal";
import { Application } from "typedoc";
import { load, MarkdownPageEvent } from "typedoc-plugin-markdown";
import { readJson } from "../lib/lock-file.mjs";
import { main, root, say, stateDir, Trouble } from "../lib/project.mjs";
import { run } from "../lib/run.mjs";
import { BriefTheme } from "./brief-theme.mjs";

const PACKAGES = ["core", "scheduler", "sdk", "ops", "testing"];
const FOLDER = join(root, "docs", "api");

/** @type {Partial<import("typedoc").TypeDocOptions> & import("typedoc-plugin-markdown").PluginOptions} */
const OPTIONS = {
  logLevel: "Warn",
  plugin: [load],
  theme: "brief",
  readme: "none",
  cleanOutputDir: false,
  excludeExternals: true,
  compilerOptions: { module: "nodenext", strict: true, exactOptionalPropertyTypes: true, target: "es2023" },
  skipErrorChecking: true,
  disableSources: true,
  groupOrder: ["Classes", "Functions", "Variables", "Constructors", "Properties", "*"],
  outputFileStrategy: "modules",
  hidePageHeader: true,
  hideGroupHeadings: true,
  // GitHub numbers equal headlines in another way than the plugin does.
  useHTMLAnchors: true,
  anchorPrefix: "api-",
  useCodeBlocks: true,
  expandObjects: true,
  expandParameters: true,
  parametersFormat: "table",
  classPropertiesFormat: "table",
  interfacePropertiesFormat: "table",
  typeAliasPropertiesFormat: "table",
  typeDeclarationFormat: "table",
  tableColumnSettings: { hideModifiers: true, hideOverrides: true, hideInherited: true, hideDefaults: true },
};

await main(async () => {
  const made = stateDir("api-reference");
  rmSync(made, { recursive: true });
  for (const name of PACKAGES) await writePage(name, made);
  writeOperations(join(made, "operations.md"));
  if (process.argv.includes("--check")) {
    const { code } = await run("git", ["diff", "--no-index", "--stat", FOLDER, made]);
    if (code !== 0) say("docs/api is stale. Run npm run docs:api and commit it.");
    return code;
  }
  rmSync(FOLDER, { recursive: true, force: true });
  cpSync(made, FOLDER, { recursive: true });
  say(`wrote ${[...PACKAGES, "operations"].map((name) => `docs/api/${name}.md`).join(", ")}`);
  return 0;
});

/** Writes the table of all operations: the calls of `operatorOf(client)`, and the routes of the HTTP API. */
function writeOperations(file) {
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
  const text = `# Operations

Written by \`npm run docs:api\` from the list of operations in [@carillon/ops](ops.md). Each is a method of \`operatorOf(client)\`, and a
route below \`/api/v1\` of the [HTTP API](../http-api.md). Fields with \`?\` may be left out. A read takes them from the query, others from a
JSON body; names in the path are fields too.

| route | method | least role | fields | answer | |
| --- | --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
  writeFileSync(file, text);
}

async function writePage(name, out) {
  const folder = join("packages", name);
  const entry = join(root, folder, "dist", "index.d.ts");
  const own = { name: `@carillon/${name}`, entryPoints: [entry], entryFileName: `${name}.md`, out };
  // Without readers of configuration files: a tsconfig.json names sources, and these are declarations.
  const app = await Application.bootstrapWithPlugins({ ...OPTIONS, ...own }, []);
  app.renderer.defineTheme("brief", BriefTheme);
  // A type as written in the source: `ErrorCode`, not the 30 codes.
  const convertType = app.converter.convertType.bind(app.converter);
  app.converter.convertType = (context, type, node = type) => convertType(context, node);
  const project = await app.convert();
  if (!project) throw new Trouble(`There are no declarations of ${folder}. Run npm run build first.`);
  app.renderer.on(MarkdownPageEvent.END, (page) => {
    const { description } = readJson(folder, "package.json");
    const about = `Written by \`npm run docs:api\` from the docstrings; its purpose is in its [README](../../${folder}/README.md).`;
    const link = (one) => `[\`${one.name}\`](#${app.renderer.router?.getAnchor(one)})`;
    const kinds = (project.groups ?? []).map(
      (kind) => `**${kind.title}**: ${kind.children.map(link).join(", ")}`,
    );
    const top = [description, about, ...kinds].join("\n\n");
    page.contents = page.contents?.replace("\n", `\n\n${top}\n`);
  });
  await app.generateOutputs(project);
  if (app.logger.hasErrors())
    throw new Trouble(`The page of ${folder} could not be written: see the errors above.`);
}
