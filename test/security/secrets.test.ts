import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { exampleOf, type JsonSchema } from "../../src/http/example.ts";
import { type Cairn, open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { logger } from "../../src/telemetry/logger.ts";
import { harmlessTexts } from "../redaction/harmless.ts";
import { type Planted, plantedSecrets } from "../redaction/planted.ts";
import { openAiStandIn, type StandIn, teiStandIn } from "../support/embedding-servers.ts";

/** Fields that are names of things, not texts. docs/redaction.md lists them as stored verbatim. */
const VERBATIM = ["project_path", "projects", "id", "files.path", "files.language", "files.hash", "renames.from", "renames.to"];

const folders: string[] = [];
const standIns: StandIn[] = [];
const spans = new InMemorySpanExporter();
afterEach(async () => {
  trace.disable();
  context.disable();
  spans.reset();
  for (const standIn of standIns.splice(0)) await standIn.close();
});
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true });
});

function folder(): string {
  folders.push(mkdtempSync(join(tmpdir(), "cairn-secrets-")));
  return folders.at(-1)!;
}

/** A text field of an operation's input: where it is, and how long it may be. */
interface TextField {
  readonly path: readonly string[];
  readonly maxChars: number;
}

/** Every text field of a schema, lists and maps included. `[]` stands for an item, `*` for the value of any key. */
function textFields(schema: JsonSchema, path: readonly string[] = []): TextField[] {
  const { properties = {}, items, additionalProperties, anyOf = [], type } = schema;
  if (type === "string" && schema.enum === undefined && schema.format === undefined && schema.pattern === undefined)
    return [{ path, maxChars: schema.maxLength ?? 100_000 }];
  return [
    ...Object.entries(properties).flatMap(([name, inner]) => textFields(inner, [...path, name])),
    ...(items ? textFields(items, [...path, "[]"]) : []),
    ...(typeof additionalProperties === "object" ? textFields(additionalProperties as JsonSchema, [...path, "*"]) : []),
    ...anyOf.flatMap((inner) => textFields(inner, path)),
  ];
}

/** The input with the text at that place. */
function planted(input: unknown, [name, ...rest]: readonly string[], text: string): unknown {
  if (name === undefined) return text;
  if (name === "[]") return [planted(Array.isArray(input) ? input[0] : undefined, rest, text)];
  if (name === "*") return { note: planted(undefined, rest, text) };
  return { ...(input as object | undefined), [name]: planted((input as Record<string, unknown> | undefined)?.[name], rest, text) };
}

/** Texts with as many secrets each as fit. */
function packs(secrets: readonly Planted[], maxChars: number): string[] {
  const texts: string[] = [];
  let text = "";
  for (const one of secrets) {
    if (one.text.length > maxChars) continue;
    const longer = text === "" ? one.text : `${text}\n\nNext:\n${one.text}`;
    if (longer.length > maxChars) texts.push(text);
    text = longer.length > maxChars ? one.text : longer;
  }
  return text === "" ? texts : [...texts, text];
}

/** The longest part of a secret without line ends: what a search of bytes can find. */
const needle = ({ secret }: Planted) => secret.split(/\n|\\n/).sort((a, b) => b.length - a.length)[0]!;

const bytesUnder = (path: string): Buffer =>
  Buffer.concat(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name))),
  );

/** Values that make calls succeed as far as they can, by field. */
async function baseInputs(cairn: Cairn, projectPath: string): Promise<Record<string, unknown>> {
  const checkpoint = await cairn.checkpoints.save({ projectPath, summary: "Where it began" });
  await cairn.code.indexBatch({ projectPath, files: [{ path: "src/a.ts", content: "export function begin() {}\n" }] });
  return { project_path: projectPath, id: checkpoint.id };
}

/** Inputs that do not follow from the schema alone. */
const FIXED: Readonly<Record<string, object>> = {
  checkpoint_import: { records: [{ summary: "x" }] },
  knowledge_save: { id: undefined, kind: "faq", category: "c", question: "Which?", answer: "That." },
  knowledge_import: { content: '[{"kind":"faq","category":"c","question":"q","answer":"a"}]', source: "faq.json", validate: undefined },
  code_send: { files: [{ path: "src/b.ts", content: "export const b = 1;\n" }], renames: undefined },
  code_similar: { path: undefined, line: undefined, text: "function begin" },
  code_context: { path: undefined, symbol: "begin" },
  migrate: { to: "postgres://localhost:1/none", dry_run: true },
};

describe.each([
  ["OpenAI", async () => ({ standIn: await openAiStandIn(64), embedder: { kind: "openai" as const, dimensions: 64, apiKey: "none" } })],
  ["TEI", async () => ({ standIn: await teiStandIn({ dimension: 64 }), embedder: { kind: "tei" as const, dimensions: 64 } })],
])("secrets planted in every text input of every operation, with %s as provider", (_, start) => {
  it("reach neither the provider nor the disk, the log, the spans, an export or a backup", async () => {
    const secrets = plantedSecrets(13);
    expect(new Set(secrets.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(60);
    const { standIn, embedder } = await start();
    standIns.push(standIn);
    trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }));
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const dataDir = folder();
    const stateDir = folder();
    const project = folder();
    mkdirSync(join(project, "src"));
    const lines: string[] = [];
    const log = logger({ level: "debug", pretty: false, write: (line) => lines.push(line) });
    const cairn = await open({ dataDir, stateDir, embedder: { ...embedder, baseUrl: standIn.url } });
    const base = await baseInputs(cairn, project);
    let calls = 0;
    let succeeded = 0;
    const call = async (name: string, input: unknown) => {
      calls++;
      const operation = operations.find((one) => one.name === name)!;
      const answer = await invoke(cairn, operation, input, { caller: LOCAL_CALLER, log, edge: "http" }).catch((error: Error) => error);
      if (!(answer instanceof Error)) succeeded++;
      else log.warn({ err: answer }, answer.message);
      return answer;
    };
    const fields: string[] = [];
    for (const operation of operations) {
      const schema = z.toJSONSchema(operation.input, { io: "input", unrepresentable: "any" }) as JsonSchema;
      const example = exampleOf(schema) as Record<string, unknown>;
      const known = Object.fromEntries(Object.entries(base).filter(([name]) => name in (schema.properties ?? {})));
      const input = { ...example, ...known, ...FIXED[operation.name] };
      for (const field of textFields(schema)) {
        if (VERBATIM.includes(field.path.filter((part) => part !== "[]").join("."))) continue;
        fields.push(`${operation.name} ${field.path.join(".")}`);
        for (const text of packs(secrets, field.maxChars)) await call(operation.name, planted(input, field.path, text));
      }
    }
    // Records of imports have a form of their own, which the schemas leave open.
    for (const text of packs(secrets, 500)) {
      await call("checkpoint_import", { project_path: project, records: [{ summary: text, description: text, context: { note: text } }] });
      const record = { kind: "faq", category: "c", question: text, answer: text };
      await call("knowledge_import", { project_path: project, content: JSON.stringify([record]), source: "faq.json" });
      await call("code_send", { project_path: project, files: [{ path: "src/c.py", content: `"""\n${text}\n"""\n` }] });
    }
    expect(fields).toEqual(
      expect.arrayContaining(["code_search query", "code_similar text", "checkpoint_save context.*", "code_send files.[].content"]),
    );
    await cairn.embeddings.upgrade({ projectPath: project, collection: "checkpoints" });
    const exported = JSON.stringify(await call("checkpoint_export", { project_path: project, limit: 100 }));
    expect(await call("backup", { project_path: project })).not.toBeInstanceOf(Error);
    await expect.poll(async () => (await cairn.indexing.depth(project)).pending).toBe(0);
    const opened = Buffer.concat([bytesUnder(dataDir), bytesUnder(stateDir)]); // with the write-ahead logs still there
    await cairn.close();
    const disk = Buffer.concat([opened, bytesUnder(dataDir), bytesUnder(stateDir)]);
    const received = standIn.requests.map(({ body }) => JSON.stringify(body)).join("\n");
    const finished = JSON.stringify(
      spans.getFinishedSpans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    );

    // The test looks at something: calls went through, and marks arrived everywhere.
    expect(succeeded).toBeGreaterThan(calls / 4);
    for (const place of [disk.toString("latin1"), received, exported]) expect(place).toContain("[redacted:github-token]");
    const leaks = secrets.flatMap((one) => {
      const secret = needle(one);
      const places = { provider: received, log: lines.join(""), spans: finished, export: exported };
      const where = Object.entries(places).flatMap(([name, text]) => (text.includes(secret) ? [name] : []));
      return disk.includes(secret) || where.length > 0
        ? [{ kind: one.kind, where: disk.includes(secret) ? ["disk", ...where] : where }]
        : [];
    });
    expect(leaks).toEqual([]);
  });
});

it("documents every field that is stored verbatim", () => {
  const page = readFileSync(resolve(import.meta.dirname, "../../docs/redaction.md"), "utf8");
  expect(VERBATIM.filter((field) => !page.includes(`\`${field}\``))).toEqual([]);
});

it("keeps 200 harmless texts unchanged from the input to the provider and the disk", async () => {
  const standIn = await teiStandIn({ dimension: 64 });
  standIns.push(standIn);
  const cairn = await open({ storage: "memory", embedder: { kind: "tei", dimensions: 64, baseUrl: standIn.url } });
  const texts = harmlessTexts();
  expect(texts.length).toBeGreaterThanOrEqual(200);
  for (const text of texts) {
    const saved = await cairn.checkpoints.save({ projectPath: "/app", summary: "Notes", description: text });
    expect(saved).toMatchObject({ description: text });
    await cairn.code.similar({ projectPath: "/app", text });
  }
  await cairn.close();
  const received = standIn.requests.flatMap(({ body }) => body.inputs ?? []).join("\n");
  for (const text of texts) expect(received).toContain(text);
});
