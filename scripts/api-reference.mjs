// npm run docs:api: writes docs/api from the declarations that the build made. With --check it writes nothing, and fails
// where what is committed is stale. Plain text work: TypeScript 7 has no stable API, and no generator supports it yet.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { main, root, say, Trouble } from "./lib/project.mjs";

const PACKAGES = ["core", "scheduler", "sdk", "testing"];
const FOLDER = join(root, "docs", "api");
/** Types that a schema library infers are not for reading. */
const LONGEST_INFERRED = 12;
const KINDS = [
  ["class", "Classes"],
  ["function", "Functions"],
  ["const", "Values"],
  ["type", "Types"],
];
const TAGS = { throws: "Throws", returns: "Returns" };

/** Whatever must not be taken for a bracket or an end. */
const OPAQUE = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|\/\/.*/y;
const BLOCK = /^(?:export )?(?:declare )?(?:abstract )?(?:class|enum|interface|namespace) /;

await main(() => {
  const pages = new Map(PACKAGES.map((name) => [`${name}.md`, page(name)]));
  return process.argv.includes("--check") ? check(pages) : write(pages);
});

function write(pages) {
  mkdirSync(FOLDER, { recursive: true });
  for (const [file, text] of pages) writeFileSync(join(FOLDER, file), text);
  for (const file of strangers(pages)) rmSync(join(FOLDER, file));
  say(`wrote ${[...pages.keys()].map((file) => `docs/api/${file}`).join(", ")}`);
  return 0;
}

function check(pages) {
  const stale = [...pages.keys()].filter((file) => {
    const path = join(FOLDER, file);
    return !existsSync(path) || readFileSync(path, "utf8") !== pages.get(file);
  });
  stale.push(...strangers(pages));
  if (stale.length === 0) return 0;
  say(`stale: ${stale.map((file) => `docs/api/${file}`).join(", ")}. Run npm run docs:api and commit it.`);
  return 1;
}

/** What lies in the folder and is none of ours: of a package that is no longer there. */
function strangers(pages) {
  if (!existsSync(FOLDER)) return [];
  return readdirSync(FOLDER).filter((file) => file.endsWith(".md") && !pages.has(file));
}

/** One package's page. */
function page(name) {
  const exported = [...exportsOf(entry(name))].map(([as, found]) => ({ as, ...found }));
  const known = new Set(exported.map(({ as }) => as));
  exported.sort((a, b) => compare(a.as.toLowerCase(), b.as.toLowerCase()) || compare(a.as, b.as));
  const { description } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  const parts = [
    `# @carillon/${name}`,
    description,
    `Written by \`npm run docs:api\` from the docstrings; what it is for is said in its [README](../../packages/${name}/README.md).`,
    index(exported),
    ...exported.map((one) => section(one, known)),
  ];
  return `${parts.join("\n\n")}\n`;
}

function index(exported) {
  const lines = KINDS.flatMap(([kind, title]) => {
    const names = exported.filter(({ declarations }) => kindOf(declarations[0]) === kind);
    if (names.length === 0) return [];
    return [`**${title}**: ${names.map(({ as }) => `[\`${as}\`](#${as.toLowerCase()})`).join(", ")}`];
  });
  return lines.join("\n\n");
}

function kindOf({ kind }) {
  return kind === "interface" || kind === "enum" ? "type" : kind === "let" ? "const" : kind;
}

function section({ as, name, declarations }, known) {
  const docs = declarations.filter(({ doc }) => doc !== "").map(({ doc }) => prose(doc, known));
  const examples = docs.flatMap((one) => one.examples);
  const code = declarations.map(({ text }) => shown(text)).join("\n");
  const renamed = name === as ? [] : [`Inside of the package: \`${name}\`.`];
  return [`## ${as}`, ...docs.map(({ text }) => text), ...renamed, fenced(code), ...examples].join("\n\n");
}

function fenced(code) {
  return `\`\`\`ts\n${code}\n\`\`\``;
}

/** A declaration as a reader wants it. */
function shown(text) {
  const lines = text
    .replace(/^export (?:declare )?/, "")
    .split("\n")
    .filter((line) => !/^\s*(?:#private;|private )/.test(line))
    .map((line) => line.replace(/^( {4})+/, (indent) => " ".repeat(indent.length / 2)));
  const code = lines
    .join("\n")
    .replace(/import\("[^"]+"\)\./g, "")
    .replace(/\{\n\}$/, "{}");
  // Only what was inferred is that long in one statement: interfaces and classes are written by hand.
  const inferred = /^const (\w+): (z\.\w+)</.exec(code);
  return inferred && lines.length > LONGEST_INFERRED ? `const ${inferred[1]}: ${inferred[2]}<…>;` : code;
}

/** A docstring's text as Markdown: its tags become a list, its examples code. @param known what a link may lead to */
function prose(doc, known) {
  const [text, ...tags] = doc.split(/^@(?=\w)/m);
  const notes = [];
  const examples = [];
  for (const tag of tags) {
    const [, word, rest = ""] = /^(\w+)\s*([\s\S]*)$/.exec(tag) ?? [];
    const line = rest.trim().replace(/\s*\n\s*/g, " ");
    if (word === "example") examples.push(`For example:\n\n${fenced(rest.trim())}`);
    else if (word === "param") notes.push(`- ${line.replace(/^(\S+)\s*/, "`$1`: ")}`);
    else notes.push(`- ${TAGS[word] ?? word}: ${line}`);
  }
  // A tag may stand at the end of a sentence.
  const inline = text.trim().replace(/ @(throws|returns)\s+/g, (_, word) => ` ${TAGS[word]}: `);
  const linked = inline.replace(/\{@link (\w+)\}/g, (_, name) =>
    known.has(name) ? `[\`${name}\`](#${name.toLowerCase()})` : `\`${name}\``,
  );
  return { text: [linked, notes.join("\n")].filter(Boolean).join("\n\n"), examples };
}

/** What a module exports: by its name outside, the name inside and its declarations, followed to where they are. */
function exportsOf(file, seen = new Set()) {
  const found = new Map();
  if (seen.has(file)) return found;
  const module = read(file);
  for (const declaration of module.declarations.filter(({ exported }) => exported)) {
    const { declarations = [] } = found.get(declaration.name) ?? {};
    found.set(declaration.name, { name: declaration.name, declarations: [...declarations, declaration] });
  }
  for (const { names, from } of module.exports) {
    if (from === undefined) {
      for (const [name, as] of names) {
        const declarations = module.declarations.filter((one) => one.name === name);
        if (declarations.length > 0) found.set(as, { name, declarations });
      }
      continue;
    }
    const target = resolve(file, from);
    if (target === undefined) continue;
    const theirs = exportsOf(target, new Set(seen).add(file));
    if (names === "*") for (const [as, one] of theirs) if (!found.has(as)) found.set(as, one);
    if (names === "*") continue;
    for (const [name, as] of names) {
      const one = theirs.get(name);
      if (!one) throw new Trouble(`${file} exports ${name}, which ${target} does not. Build again.`);
      found.set(as, one);
    }
  }
  return found;
}

/** The declarations that an import leads to; undefined: not ours. */
function resolve(file, from) {
  if (from.startsWith(".")) return join(dirname(file), from.replace(/\.js$/, ".d.ts"));
  const own = /^@carillon\/([\w-]+)$/.exec(from)?.[1];
  return own === undefined ? undefined : entry(own);
}

function entry(name) {
  return join(root, "packages", name, "dist", "index.d.ts");
}

function read(file) {
  if (!existsSync(file)) throw new Trouble(`${file} is not there. Run npm run build first.`);
  return readModule(readFileSync(file, "utf8"));
}

/** A declaration file's own declarations, and what it exports of others. */
function readModule(text) {
  const declarations = [];
  const exports = [];
  for (const { doc, code } of statements(text)) {
    const list = /^export (?:type )?(?:\*|\{([\s\S]*)\})(?: from "([^"]+)")?;$/.exec(code);
    if (list) {
      exports.push({ names: list[1] === undefined ? "*" : namesOf(list[1]), from: list[2] });
      continue;
    }
    const head =
      /^(export )?(?:declare )?(?:abstract )?(class|const|enum|function|interface|let|type) (\w+)/.exec(code);
    if (head)
      declarations.push({ exported: head[1] !== undefined, kind: head[2], name: head[3], doc, text: code });
  }
  return { declarations, exports };
}

/** `a, type b, c as d`: pairs of the name there and the name here. */
function namesOf(list) {
  const parts = list.split(",").map((part) => part.trim().replace(/^type /, ""));
  return parts.filter(Boolean).map((part) => {
    const [name, as = name] = part.split(" as ");
    return [name, as];
  });
}

/** The statements of a declaration file, each with the docstring before it. */
function* statements(text) {
  let doc = "";
  let start = -1;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    OPAQUE.lastIndex = i;
    const opaque = OPAQUE.exec(text)?.[0];
    if (opaque) {
      if (start < 0 && opaque.startsWith("/**")) doc = cleaned(opaque);
      else if (start < 0 && !opaque.startsWith("/")) start = i;
      i += opaque.length - 1;
      continue;
    }
    const char = text[i];
    if (start < 0 && /\s/.test(char)) continue;
    if (start < 0) start = i;
    if ("([{".includes(char)) depth += 1;
    if (")]}".includes(char)) depth -= 1;
    const ends = char === ";" || (char === "}" && BLOCK.test(text.slice(start, start + 200)));
    if (depth > 0 || !ends) continue;
    yield { doc, code: text.slice(start, i + 1) };
    doc = "";
    start = -1;
  }
}

/** The text of a docstring. */
function cleaned(comment) {
  const lines = comment.slice(3, -2).split("\n");
  return lines
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .join("\n")
    .trim();
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
