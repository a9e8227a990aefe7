import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { commandTable } from "../src/cli/command-table.ts";
import { SETTINGS } from "../src/config/settings.ts";
import { openApi } from "../src/http/openapi.ts";
import { WIRE_NAME } from "../src/model/errors.ts";
import { operations } from "../src/operations/list.ts";

const root = resolve(import.meta.dirname, "..");
const page = readFileSync(join(root, "docs/from-the-seeds.md"), "utf8");

/** The sources as text: the names of tables, columns, fields and members are taken from them. */
const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => readFileSync(join(root, "src", file), "utf8"));

interface Name {
  readonly section: string;
  readonly name: string;
}

/** Returns the names on Cairn's side of the page. «the same» refers to the names on the left. */
function cairnNames(): Name[] {
  const names: Name[] = [];
  let section = "";
  let isMapping = false;
  for (const line of page.split("\n")) {
    if (line.startsWith("## ")) section = line.slice(3);
    if (/^\| (original name|not taken over) /.test(line)) isMapping = line.startsWith("| original");
    else if (line.startsWith("| ") && !line.startsWith("| ---") && isMapping) {
      const [original = "", cairn = ""] = line.slice(2).split(" | ");
      const text = cairn.startsWith("the same") ? original + cairn : cairn;
      names.push(...[...text.matchAll(/`([^`]+)`/g)].map(([, name]) => ({ section, name: name! })));
    }
  }
  return names;
}

const words = (texts: readonly string[], pattern: RegExp) =>
  new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, word]) => word!)));

describe("docs/from-the-seeds.md", async () => {
  const exported = words([readFileSync(join(root, "test/surface.txt"), "utf8")], /^(?:type )?(\w+)$/gm);
  const entries = words([readFileSync(join(root, "test/surface.txt"), "utf8")], /^\.(\/\w+)$/gm);
  const schemas = words(
    sources.filter((text) => text.includes("CREATE TABLE")),
    /\b([a-z]+(?:_[a-z]+)*)\b/g,
  );
  const nouns = new Set(operations.map(({ name }) => name.split("_")[0]!));
  const measures = words(sources, /create(?:Counter|Histogram|ObservableGauge)\(`\$\{noun\}\.([a-z_.]+)`/g);
  const metrics = new Set([...nouns].flatMap((noun) => [...measures].map((measure) => `${noun}.${measure}`)));
  const routes = new Set(
    Object.entries(openApi(operations).paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    ),
  );
  const commands = new Set((await commandTable()).map(({ path }) => ["cairn", ...path].join(" ")));
  const settings = new Set(SETTINGS.flatMap(({ key, envNames }) => [key, ...envNames]));
  const fields = words([JSON.stringify(openApi(operations))], /"(\w+)":/g);
  // Members of types and classes, functions, fields of files, and literal values.
  const declared = words(sources, /(?:(?<=(?:interface|class) )|\b(?=\w+\??[:(<]))(\w+)/g);
  const literals = words(sources, /["'`]([\w./~-]+)["'`]/g);

  function exists(name: string): boolean {
    if (/^(GET|POST) /.test(name)) return routes.has(name);
    if (name.startsWith("cairn-memory/")) return entries.has(name.slice("cairn-memory".length));
    if (name.startsWith("cairn ")) return commands.has(name);
    if (name.startsWith("--")) return sources.some((text) => text.includes(`"${name.slice(2)}"`) || text.includes(name));
    if (/^[a-z]+(\.[a-z_]+)+$/.test(name) && (settings.has(name) || metrics.has(name))) return true;
    if (/^[A-Z][A-Za-z]+$/.test(name) && exported.has(name)) return true;
    const [, field, value] = /^(\w+): "(\w+)"$/.exec(name) ?? [];
    if (field) return (fields.has(field) || declared.has(field)) && literals.has(value!);
    const places = [...name.matchAll(/\{(\w+)\}/g)].map(([, place]) => place!);
    if (places.length > 0) return places.every((place) => settings.has(place) || fields.has(place));
    const columns = /^UNIQUE ?\((.+)\)$/.exec(name)?.[1];
    if (columns) return sources.some((text) => new RegExp(`UNIQUE \\((?:collection, )?${columns}\\)`).test(text));
    const member = /^cairn\.(\w+)$/.exec(name)?.[1];
    if (member) return declared.has(member);
    const called = /^(?:new )?(\w+)\(/.exec(name)?.[1];
    if (called) return exported.has(called) || declared.has(called);
    return (
      [schemas, settings, fields, exported, declared, literals].some((known) => known.has(name)) ||
      Object.values(WIRE_NAME).includes(name as never)
    );
  }

  it("maps names in each of the five sections", () => {
    const names = cairnNames();
    const sections = [...new Set(names.map(({ section }) => section))];
    expect(sections).toEqual(["Context checkpoints", "Code index", "Runs", "Systems", "Embeddings and knowledge"]);
    for (const one of sections) expect(names.filter(({ section }) => section === one).length).toBeGreaterThan(20);
  });

  it("names only operations, exports, tables, columns, metrics, settings and commands that exist", () => {
    expect(cairnNames().filter(({ name }) => !exists(name))).toEqual([]);
  });

  it("does not accept a name that is in no list", () => {
    expect(
      ["chunk_generation_old", "POST /indexes", "cairn run forget", "checkpoint.delay", "CheckpointKeeper", "systems.snapshots"].filter(
        exists,
      ),
    ).toEqual([]);
  });
});
