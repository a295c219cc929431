import { relative, sep } from "node:path";
import ts from "typescript";
import { root, Trouble } from "../lib/project.mjs";

/** A declaration that is not longer than this gets one line. */
const WIDTH = 140;
/** A value whose inferred type has more lines is only named: docs/operations.md describes the operations. */
const LINES = 50;

/**
 * Each export of each entry point with its signature, by name, as Markdown. An export that comes from another package is only named.
 *
 * @param {{ name: string, file: string }[]} entries public entry points and their declarations
 */
export function signatures(entries) {
  const program = ts.createProgram(
    entries.map(({ file }) => file),
    { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, strict: true },
  );
  const checker = program.getTypeChecker();
  return entries.map(({ name, file }) => {
    const source = program.getSourceFile(file);
    const module = source && checker.getSymbolAtLocation(source);
    if (!module) throw new Trouble(`There are no declarations of ${name}. Run npm run build first.`);
    const texts = checker
      .getExportsOfModule(module)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap((symbol) => {
        const isAlias = symbol.flags & ts.SymbolFlags.Alias;
        const { declarations = [] } = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
        const from = packageOf(declarations[0].getSourceFile().fileName);
        return from === packageOf(file)
          ? declarations.map(print)
          : [`export { ${symbol.name} } from "${from}";`];
      });
    return `## ${name}\n\n<!-- not compiled: declarations -->\n\n\`\`\`ts\n${texts.join("\n")}\n\`\`\`\n`;
  });
}

/** @param {ts.Declaration} declaration */
function print(declaration) {
  const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  const text = ts
    .createPrinter({ removeComments: true })
    .printNode(ts.EmitHint.Unspecified, statement, declaration.getSourceFile())
    .replace(/^export (declare )?/, "")
    .replace(/^ +#private;\n/m, "")
    .replaceAll("    ", "  ");
  if (ts.isVariableDeclaration(declaration) && text.split("\n").length > LINES)
    return `const ${declaration.name.getText()}: { … };`;
  const line = text.replace(/\s+/g, " ");
  return line.length <= WIDTH ? line : text;
}

function packageOf(file) {
  const [, folder] = relative(root, file).split(sep);
  return `@carillon/${folder}`;
}
