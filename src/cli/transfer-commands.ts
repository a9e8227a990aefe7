import { createReadStream, existsSync } from "node:fs";
import { open as openFile, rename, rm } from "node:fs/promises";
import type { Imported } from "../checkpoints/transfer.ts";
import { CheckpointOutput } from "../checkpoints/wire-schemas.ts";
import { openClient } from "../client/open-client.ts";
import { boundedLines } from "../files/bounded-lines.ts";
import { openRegularFile } from "../files/regular-file.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { asCairnError, CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { Cairn } from "../operations/cairn.ts";
import { damagedField, damagedNote } from "../operations/schemas.ts";
import { toWire } from "../operations/wire.ts";
import { parseJson } from "../text/untrusted.ts";
import { usage } from "./argv.ts";
import type { Call, Command } from "./command.ts";
import { EXIT_ATTENTION } from "./exit-code.ts";
import { filePath } from "./file-path.ts";
import { type Host, print, printJson } from "./host.ts";
import { progressBar } from "./terminal/progress-bar.ts";

/** The first line of an export. */
const FORMAT = { cairn_export: 1, kind: "checkpoints" };
const PROBLEMS_SHOWN = 20;
/** A record has at most about 40,000 characters. */
const LINE_LIMITS = { lineBytes: 1_000_000, unbrokenBytes: 64_000_000 };

/** `cairn checkpoint export`: writes one JSON object per line, page by page, so that memory stays bounded. */
export const exportCommand: Command = {
  path: ["checkpoint", "export"],
  summary: "Write all checkpoints of a project to a file, one JSON object per line.",
  flags: [
    { name: "file", kind: "text", description: "File to write. Default, or -: standard output.", placeholder: "path" },
    { name: "overwrite", kind: "switch", description: "Replace the file if it exists." },
    { name: "without-deleted", kind: "switch", description: "Leave out deleted checkpoints, which can still be restored." },
  ],
  positional: ["file"],
  examples: ["cairn checkpoint export checkpoints.jsonl", "cairn checkpoint export | jq .summary"],
  usesProject: true,
  async run(call) {
    const { host, values } = call;
    const file = values.file === undefined || values.file === "-" ? undefined : filePath(host, values.file);
    if (call.json && file === undefined) throw usage("--json prints the answer on standard output, so it needs a <file> for the export.");
    if (file !== undefined && values.overwrite !== true && existsSync(file))
      throw new CairnError("conflict", `${file} exists and was not changed. Choose another file, or replace it with --overwrite.`);
    await withCairn(call, async (cairn) => {
      const damaged = new Map<string, DamagedRecord>();
      const lines = exportLines(cairn, call.project().repository, host, {
        damaged,
        withoutDeleted: values["without-deleted"] === true,
      });
      if (file === undefined) {
        for await (const line of lines) await writeOut(host, line);
      } else {
        const records = (await writeFile(file, lines)) - 1;
        if (call.json) printJson(host, { file, records, ...damagedField([...damaged.values()]) });
        else print(host, `Wrote ${records} checkpoints to ${file}`);
      }
      if (damaged.size === 0) return;
      call.endWith(EXIT_ATTENTION);
      for (const note of damagedNote([...damaged.values()])) host.stderr.write(`${note}\n`);
    });
  },
};

/** Yields the lines of an export. Damaged records are skipped and added to the map. */
async function* exportLines(
  cairn: Cairn,
  projectPath: string,
  { now, signal }: Host,
  { damaged, withoutDeleted }: { readonly damaged: Map<string, DamagedRecord>; readonly withoutDeleted: boolean },
): AsyncGenerator<string> {
  yield `${JSON.stringify({ ...FORMAT, project_path: projectPath, exported_at: now().toISOString() })}\n`;
  let cursor: string | undefined;
  do {
    signal.throwIfAborted();
    const page = await cairn.checkpoints.export({ projectPath, limit: LIMITS.transferRecords, cursor, withoutDeleted });
    // A server omits the list when it is empty.
    for (const record of page.damaged ?? []) damaged.set(record.id, record);
    for (const checkpoint of page.records) yield `${JSON.stringify(toWire(CheckpointOutput, checkpoint))}\n`;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** Writes a file atomically, readable only by the current user. Returns the number of lines. */
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

/** `cairn checkpoint import`: may be repeated; existing checkpoints stay unchanged. */
export const importCommand: Command = {
  path: ["checkpoint", "import"],
  summary: "Import checkpoints from an export. Existing checkpoints stay unchanged.",
  flags: [
    {
      name: "file",
      kind: "text",
      description: "File that `cairn checkpoint export` wrote; - for standard input.",
      placeholder: "path",
      required: true,
    },
  ],
  positional: ["file"],
  examples: ["cairn checkpoint import checkpoints.jsonl", "cairn checkpoint import - < checkpoints.jsonl"],
  usesProject: true,
  async run(call) {
    const { host, values } = call;
    if (values.file === undefined) throw usage("<file> is missing. Give the path of an export, or - for standard input.");
    const bar = progressBar(host);
    await withCairn(call, async (cairn) => {
      try {
        const path = values.file === "-" ? "the input" : filePath(host, values.file);
        const input = values.file === "-" ? host.stdin : openStream(path);
        let stored = 0;
        const outcome = await importLines(cairn, call.project().repository, input, path, host, (done) => {
          stored = done;
          bar.update(done, undefined, "imported");
        }).catch((cause: unknown) => {
          if (!host.signal.aborted) throw cause;
          const kept = `${stored} checkpoints are stored. Repeat the import for the rest.`;
          throw new CairnError("cancelled", `Cancelled. ${kept}`, { cause, details: { kept } });
        });
        bar.clear();
        if (call.json) printJson(host, outcome);
        else print(host, outcomeText(outcome));
        if (outcome.failed > 0) call.endWith(EXIT_ATTENTION);
      } finally {
        bar.clear();
      }
    });
  },
};

function openStream(path: string): NodeJS.ReadableStream {
  try {
    return createReadStream(path, { fd: openRegularFile(path) });
  } catch (error) {
    throw fileError(path, error);
  }
}

interface ImportOutcome extends Pick<Imported, "imported" | "present"> {
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
): Promise<ImportOutcome> {
  let [line, imported, present, failed] = [0, 0, 0, 0];
  const problems: { line: number; problem: string }[] = [];
  const reject = (at: number, problem: string) => {
    failed++;
    if (problems.length < PROBLEMS_SHOWN) problems.push({ line: at, problem });
  };
  let batch: { readonly at: number; readonly record: unknown }[] = [];
  const flush = async () => {
    if (batch.length === 0) return;
    const outcome = await cairn.checkpoints.import({ projectPath, records: batch.map(({ record }) => record) }, { signal });
    imported += outcome.imported;
    present += outcome.present;
    for (const { record, problem } of outcome.problems) reject(batch[record - 1]!.at, problem);
    progress(imported + present);
    batch = [];
  };
  try {
    for await (const text of boundedLines(input as AsyncIterable<Buffer>, signal, LINE_LIMITS)) {
      line++;
      if (text?.trim() === "") continue;
      const record = text === undefined ? undefined : parseObject(text.replace(/^\uFEFF/, ""));
      if (record === undefined) reject(line, text === undefined ? "the line is too long or not UTF-8 text" : "is not a JSON object");
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

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseJson(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // reported with its line
  }
}

function assertFormat(header: Record<string, unknown>): void {
  if (header.cairn_export !== FORMAT.cairn_export || header.kind !== FORMAT.kind)
    throw new CairnError(
      "invalid_input",
      "The file is not an export of checkpoints, or of an unsupported version. Give a file that cairn checkpoint export wrote.",
    );
}

function outcomeText({ imported, present, failed, problems }: ImportOutcome): string {
  return [
    `${imported} checkpoints imported, ${present} already present, ${failed} failed.`,
    ...problems.map(({ line, problem }) => `  line ${line}: ${problem}`),
    ...(failed > problems.length ? [`  … and ${failed - problems.length} more`] : []),
  ].join("\n");
}

async function withCairn(call: Call, work: (cairn: Cairn) => Promise<void>): Promise<void> {
  const { cairn } = await openClient(call.config().config, { jobs: "here" });
  try {
    await work(cairn);
  } finally {
    await cairn.close();
  }
}

async function writeOut({ stdout }: Host, text: string): Promise<void> {
  if (!stdout.write(text)) await new Promise((resolved) => stdout.once("drain", resolved));
}

function fileError(path: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof CairnError || code === undefined || !/^E[A-Z]+$/.test(code)) return asCairnError(error);
  if (code === "ENOENT") return new CairnError("not_found", `There is no file or folder ${path}.`, { cause: error });
  return new CairnError("unavailable", `${path} cannot be read or written (${code}).`, { cause: error });
}
