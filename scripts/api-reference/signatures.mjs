import { relative, sep } from "node:path";
import ts from "typescript";
import { root, Trouble } from "../lib/project.mjs";

/** A declaration that is not longer than this gets one line. */
const WIDTH = 140;
/** A value whose inferred type has more lines is only named: docs/operations-reference.md describes the operations. */
const LINES = 50;

/**
 * @typedef {object} Entry
 * @property {string} name of a public entry point
 * @property {{ name: string, text: string, docs: string }[]} exports by name: their declarations, and their docstrings. One that comes from
 * another package is only named.
 */

/**
 * The exports of each entry point.
 *
 * @param {{ name: string, file: string }[]} entries public entry points and their declarations
 * @param {{ comments?: boolean }} [how] `comments`: declarations with the docstrings of their members
 * @returns {Entry[]}
 */
function exportsOf(entries, { comments = false } = {}) {
  const program = ts.createProgram(
    entries.map(({ file }) => file),
    { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, strict: true },
  );
  const checker = program.getTypeChecker();
  const printer = ts.createPrinter({ removeComments: !comments });
  return entries.map(({ name, file }) => {
    const source = program.getSourceFile(file);
    const module = source && checker.getSymbolAtLocation(source);
    if (!module) throw new Trouble(`There are no declarations of ${name}. Run npm run build first.`);
    const exports = checker
      .getExportsOfModule(module)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((symbol) => {
        const own = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
        const { declarations = [] } = own;
        const from = packageOf(declarations[0].getSourceFile().fileName);
        const text =
          from === packageOf(file)
            ? declarations.map((one) => print(printer, one)).join("\n")
            : `export { ${symbol.name} } from "${from}";`;
        return { name: symbol.name, text, docs: comments ? docsOf(own, checker) : "" };
      });
    return { name, exports };
  });
}

/** Each export with its signature, as Markdown. */
export const signatures = (entries) =>
  exportsOf(entries).map(
    ({ name, exports }) =>
      `## ${name}\n\n<!-- not compiled: declarations -->\n\n\`\`\`ts\n${exports.map(({ text }) => text).join("\n")}\n\`\`\`\n`,
  );

/**
 * The pages of the reference, by their file names: one for each entry point, each export with its docstring, and a list of them.
 *
 * @param {{ name: string, file: string }[]} entries
 */
export function referencePages(entries) {
  const all = exportsOf(entries, { comments: true });
  const fileOf = (name) => `${name.replace("@carillon/", "").replaceAll("/", "-")}.md`;
  const list = all.map(({ name, exports }) => {
    const links = exports.map((one) => `[\`${one.name}\`](${fileOf(name)}#${one.name.toLowerCase()})`);
    return `## ${name}\n\n${links.join(", ")}\n`;
  });
  return [
    ["index.md", ["# All exports\n\nEvery export of every package.\n", ...list].join("\n")],
    ...all.map(({ name, exports }) => {
      const parts = exports.map((one) =>
        [`## ${one.name}`, one.docs, `\`\`\`ts\n${one.text}\n\`\`\``].filter(Boolean).join("\n\n"),
      );
      return [fileOf(name), `${[`# ${name}`, ...parts].join("\n\n")}\n`];
    }),
  ];
}

/** The docstring of an export, as Markdown. */
function docsOf(symbol, checker) {
  const tags = symbol.getJsDocTags(checker).map(({ name, text }) => {
    if (name === "example") return `\`\`\`ts\n${plain(text)}\n\`\`\``;
    return `**${name}** ${plain(text).replace(/^(\w+) /, name === "param" ? "`$1`: " : "$1 ")}`;
  });
  return [plain(symbol.getDocumentationComment(checker)), ...tags].filter(Boolean).join("\n\n");
}

/** The text of a docstring; links to other exports become their names, as code. */
const plain = (parts = []) =>
  parts
    .map(({ kind, text }) => (kind.startsWith("link") ? text.replace(/^\{@\w+ $|^\}$/, "`") : text))
    .join("");

/** @param {ts.Printer} printer @param {ts.Declaration} declaration */
function print(printer, declaration) {
  const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  const text = printer
    .printNode(ts.EmitHint.Unspecified, statement, declaration.getSourceFile())
    .replace(/^(\/\*\*[\s\S]*?\*\/\n)*/, "") // the docstring of the whole
    .replace(/^export (declare )?/, "")
    .replace(/^ +#private;\n/m, "")
    .replaceAll("    ", "  ");
  if (ts.isVariableDeclaration(declaration) && text.split("\n").length > LINES)
    return `const ${declaration.name.getText()}: { … };`;
  const line = text.replace(/\s+/g, " ");
  return line.length <= WIDTH && !text.includes("/**") ? line : text;
}

function packageOf(file) {
  const [, folder] = relative(root, file).split(sep);
  return `@carillon/${folder}`;
}
