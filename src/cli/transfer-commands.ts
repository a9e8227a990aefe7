import { createReadStream } from "node:fs";
import { open as openFile, rename, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Cairn } from "../cairn.ts";
import type { Imported } from "../checkpoints/transfer.ts";
import { CheckpointOutput } from "../checkpoints/wire-schemas.ts";
import { asCairnError, CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { parseJson } from "../text/json.ts";
import { toWire } from "../wire.ts";
import { usage } from "./argv.ts";
import type { Call, Command } from "./command.ts";
import { EXIT_ATTENTION } from "./exit-code.ts";
import { filePath } from "./file-path.ts";
import { type Host, print, printJson } from "./host.ts";
import { openFromConfig } from "./open-from-config.ts";
import { progressBar } from "./terminal/progress-bar.ts";

/** The first line of an export says what follows. */
const FORMAT = { cairn_export: 1, kind: "checkpoints" };
/** A record has at most about 40,000 characters; longer lines are another file. */
const LINE_CHARS = 1_000_000;
const PROBLEMS_SHOWN = 20;

/** `cairn checkpoint export`: one JSON object a line, written as it is read, so that a large project needs no memory. */
export const exportCommand: Command = {
  path: ["checkpoint", "export"],
  summary: "Write all checkpoints of a project to a file, one JSON object a line.",
  flags: [{ name: "file", kind: "text", description: "Where to; - or nothing is standard output.", placeholder: "path" }],
  positional: ["file"],
  examples: ["cairn checkpoint export checkpoints.jsonl", "cairn checkpoint export | jq .summary"],
  usesProject: true,
  async run(call) {
    const { host, values } = call;
    const file = values.file === undefined || values.file === "-" ? undefined : filePath(host, values.file);
    if (call.json && file === undefined) throw usage("With --json the answer stands on standard output: name a file to write to.");
    await withCairn(call, async (cairn) => {
      const lines = exportLines(cairn, call.project(), host);
      if (file === undefined) {
        for await (const line of lines) await written(host, line);
        return;
      }
      const records = (await writeFile(file, lines)) - 1;
      if (call.json) printJson(host, { file, records });
      else print(host, `${records} checkpoints written to ${file}`);
    });
  },
};

async function* exportLines(cairn: Cairn, projectPath: string, { now, signal }: Host): AsyncGenerator<string> {
  yield `${JSON.stringify({ ...FORMAT, project_path: projectPath, exported_at: now().toISOString() })}\n`;
  let cursor: string | undefined;
  do {
    signal.throwIfAborted();
    const page = await cairn.checkpoints.list({ projectPath, limit: LIMITS.transferRecords, cursor });
    for (const checkpoint of page.checkpoints) yield `${JSON.stringify(toWire(CheckpointOutput, checkpoint))}\n`;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** Whole or not at all: under another name first. Only the person may read it. */
async function writeFile(path: string, lines: AsyncIterable<string>): Promise<number> {
  const unfinished = `${path}.${process.pid}.tmp`;
  let count = 0;
  try {
    const file = await openFile(unfinished, "wx", 0o600);
    try {
      for await (const line of lines) {
        await file.write(line);
        count++;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
    return count;
  } catch (error) {
    await rm(unfinished, { force: true });
    throw fileError(path, error);
  }
}

/** `cairn checkpoint import`: may be repeated; what is there already stays. */
export const importCommand: Command = {
  path: ["checkpoint", "import"],
  summary: "Store the checkpoints of an export in a project. Those that are there already stay as they are.",
  flags: [
    {
      name: "file",
      kind: "text",
      description: "What `cairn checkpoint export` wrote; - is standard input.",
      placeholder: "path",
      required: true,
    },
  ],
  positional: ["file"],
  examples: ["cairn checkpoint import checkpoints.jsonl", "cairn checkpoint import - < checkpoints.jsonl"],
  usesProject: true,
  async run(call) {
    const { host, values } = call;
    if (values.file === undefined) throw usage("<file> is missing.");
    const bar = progressBar(host);
    await withCairn(call, async (cairn) => {
      try {
        const path = values.file === "-" ? "the input" : filePath(host, values.file);
        const input = values.file === "-" ? host.stdin : createReadStream(path);
        const told = await importLines(cairn, call.project(), input, path, host, (done) => bar.update(done, undefined, "imported"));
        bar.clear();
        if (call.json) printJson(host, told);
        else print(host, toldText(told));
        if (told.failed > 0) call.endWith(EXIT_ATTENTION);
      } finally {
        bar.clear();
      }
    });
  },
};

interface Told extends Pick<Imported, "imported" | "present"> {
  readonly failed: number;
  readonly problems: readonly { readonly line: number; readonly problem: string }[];
}

async function importLines(
  cairn: Cairn,
  projectPath: string,
  input: NodeJS.ReadableStream,
  path: string,
  { signal }: Host,
  progress: (done: number) => void,
): Promise<Told> {
  let [line, imported, present, failed] = [0, 0, 0, 0];
  const problems: { line: number; problem: string }[] = [];
  const tell = (at: number, problem: string) => {
    failed++;
    if (problems.length < PROBLEMS_SHOWN) problems.push({ line: at, problem });
  };
  let batch: { readonly at: number; readonly record: unknown }[] = [];
  const flush = async () => {
    if (batch.length === 0) return;
    const outcome = await cairn.checkpoints.import({ projectPath, records: batch.map(({ record }) => record) }, { signal });
    imported += outcome.imported;
    present += outcome.present;
    for (const { record, problem } of outcome.problems) tell(batch[record - 1]!.at, problem);
    progress(imported + present);
    batch = [];
  };
  try {
    const reader = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
    const failure = new Promise<never>((_, reject) => input.once("error", reject));
    failure.catch(() => {}); // raised below, by whoever waits for a line
    const lines = reader[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([lines.next(), failure]);
      if (next.done) break;
      signal.throwIfAborted();
      line++;
      const text = next.value.replace(/^\uFEFF/, "");
      if (text.trim() === "") continue;
      const record = text.length > LINE_CHARS ? undefined : parsed(text);
      if (record === undefined) tell(line, text.length > LINE_CHARS ? "the line is too long" : "is not a JSON object");
      else if ("cairn_export" in record) assertFormat(record);
      else batch.push({ at: line, record });
      if (batch.length >= LIMITS.transferRecords) await flush();
    }
    await flush();
  } catch (error) {
    throw fileError(path, error);
  }
  return { imported, present, failed, problems };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseJson(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // told with its line
  }
}

function assertFormat(header: Record<string, unknown>): void {
  if (header.cairn_export !== FORMAT.cairn_export || header.kind !== FORMAT.kind)
    throw new CairnError("invalid_input", "This file is not an export of checkpoints that this version of Cairn can read.");
}

function toldText({ imported, present, failed, problems }: Told): string {
  return [
    `${imported} checkpoints imported, ${present} were there already, ${failed} could not be stored.`,
    ...problems.map(({ line, problem }) => `  line ${line}: ${problem}`),
    ...(failed > problems.length ? [`  … and ${failed - problems.length} more`] : []),
  ].join("\n");
}

async function withCairn(call: Call, work: (cairn: Cairn) => Promise<void>): Promise<void> {
  const cairn = await openFromConfig(call.config().config);
  try {
    await work(cairn);
  } finally {
    await cairn.close();
  }
}

async function written({ stdout }: Host, text: string): Promise<void> {
  if (!stdout.write(text)) await new Promise((resolved) => stdout.once("drain", resolved));
}

function fileError(path: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof CairnError || code === undefined || !/^E[A-Z]+$/.test(code)) return asCairnError(error);
  if (code === "ENOENT") return new CairnError("not_found", `There is no file or folder ${path}.`, { cause: error });
  return new CairnError("unavailable", `${path} cannot be used (${code}).`, { cause: error });
}
