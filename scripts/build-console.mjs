// Builds the console into dist/console: one page with inline style, and scripts whose names have their hash. Each file has compressed
// copies. The types of the API come from the schemas of the operations. Skipped when neither console/ nor dist/ has changed since.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "console");
const target = join(root, "dist", "console");
const generated = join(source, "generated", "operations.ts");

if (!isCurrent()) {
  await writeTypes();
  writeStyle();
  rmSync(target, { recursive: true, force: true });
  await bundle();
}

function isCurrent() {
  const page = join(target, "index.html");
  if (!existsSync(page) || !existsSync(generated)) return false;
  const built = statSync(page).mtimeMs;
  const sources = readdirSync(source, { recursive: true }).map((name) => join(source, name));
  return [...sources, import.meta.filename, join(root, "dist", ".tsbuildinfo")].every(
    (file) => file.includes("generated") || statSync(file).mtimeMs < built,
  );
}

/** Writes the input, output, access and route of every operation, as the OpenAPI description has them. */
async function writeTypes() {
  const load = (path) => import(pathToFileURL(join(root, "dist", path)).href);
  const [{ operations: common }, { servedCodeIndex }, { routeOf }, { z }] = await Promise.all([
    load("operations/list.js"),
    load("client/jobs/served-index.js"),
    load("http/routes.js"),
    import("zod"),
  ]);
  const operations = [...common, servedCodeIndex];
  const schema = (type, io) => typeOf(z.toJSONSchema(type, { io, unrepresentable: "any" }));
  const types = operations.map(
    ({ name, input, output }) => `  ${name}: { input: ${schema(input, "input")}; output: ${schema(output, "output")} };`,
  );
  const routes = operations.map((operation) => {
    const { method, path } = routeOf(operation);
    return `  ${operation.name}: ["${operation.access}", "${method}", "${path}"],`;
  });
  mkdirSync(join(source, "generated"), { recursive: true });
  writeFileSync(
    generated,
    [
      "// Generated from the operations by scripts/build-console.mjs.",
      `export interface Operations {\n${types.join("\n")}\n}`,
      `export const ROUTES: Readonly<Record<keyof Operations, readonly ["read" | "write" | "admin", string, string]>> = {\n${routes.join("\n")}\n};`,
      "",
    ].join("\n"),
  );
}

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const union = schema.anyOf ?? schema.oneOf;
  if (union) return union.map(typeOf).join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "number":
    case "integer":
      return "number";
    case "array":
      return `(${typeOf(schema.items ?? {})})[]`;
    case "object": {
      const fields = Object.entries(schema.properties ?? {});
      if (fields.length === 0) return `Record<string, ${schema.additionalProperties ? typeOf(schema.additionalProperties) : "never"}>`;
      return `{ ${fields.map(([name, field]) => `${JSON.stringify(name)}${(schema.required ?? []).includes(name) ? "" : "?"}: ${typeOf(field)}`).join("; ")} }`;
    }
    default:
      return "unknown";
  }
}

async function bundle() {
  const { rolldown } = await import("rolldown");
  const build = await rolldown({
    input: { main: join(source, "main.tsx") },
    platform: "browser",
    tsconfig: join(source, "tsconfig.json"),
    transform: { target: "es2022" },
  });
  // One file for the frame and the start page: a chain of small files would delay it. The other pages are loaded when they are shown.
  const isCore = (id) =>
    /node_modules\/(?!@dagrejs)|\/console\/(api|state|parts|shell|generated|pages\/timeline)\//.test(id.replaceAll("\\", "/"));
  const codeSplitting = { groups: [{ name: "core", test: isCore }] };
  const names = { entryFileNames: "[name]-[hash].js", chunkFileNames: "[name]-[hash].js" };
  const { output } = await build.write({
    dir: join(target, "assets"),
    format: "esm",
    ...names,
    minify: true,
    comments: false,
    codeSplitting,
  });
  const main = output.find(({ isEntry }) => isEntry).fileName;
  const [first] = styleFiles();
  const page = readFileSync(join(source, "index.html"), "utf8")
    .replace("{style}", readStyle([first]))
    .replace("{main}", `./assets/${main}`);
  writeFileSync(join(target, "index.html"), page);
  for (const file of [join(target, "index.html"), ...readdirSync(join(target, "assets")).map((name) => join(target, "assets", name))])
    compress(file);
}

/** Writes the style that the first paint does not need into a module: the page then stays small. */
function writeStyle() {
  writeFileSync(join(source, "generated", "style.ts"), `export const STYLE = ${JSON.stringify(readStyle(styleFiles().slice(1)))};\n`);
}

function styleFiles() {
  return readdirSync(join(source, "style")).sort();
}

function readStyle(names) {
  return minifyStyle(names.map((name) => readFileSync(join(source, "style", name), "utf8")).join("\n"));
}

/** Removes comments and white space. The style has no strings that contain either. */
function minifyStyle(style) {
  return style
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,>]) ?/g, "$1")
    .replace(/: /g, ":")
    .trim();
}

function compress(file) {
  const content = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
}
