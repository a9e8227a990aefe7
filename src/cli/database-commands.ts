import { statSync } from "node:fs";
import type { ImportCounts, ProjectFile, TransferReport } from "../admin/transfer.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { openFromConfig } from "../open/open-from-config.ts";
import type { Cairn } from "../operations/cairn.ts";
import { damagedField } from "../operations/schemas.ts";
import { usage } from "./argv.ts";
import type { Call, Command, Flag } from "./command.ts";
import { EXIT_ATTENTION } from "./exit-code.ts";
import { filePath } from "./file-path.ts";
import { print, printJson } from "./host.ts";
import { progressBar } from "./terminal/progress-bar.ts";

const SCOPE: Flag = {
  name: "scope",
  kind: "text",
  description: "shared: the knowledge of all projects. Default: this project.",
  choices: ["project", "shared"],
};

const WITH_CODE: Flag = {
  name: "with-code",
  kind: "switch",
  description: "Include the code index, in <name>.code.db next to the file. Default: rebuild it with cairn code index.",
};

const WITHOUT_DELETED: Flag = {
  name: "without-deleted",
  kind: "switch",
  description: "Leave out deleted records, which can still be restored.",
};

/** `cairn database export`: writes the project to one file, also while other processes use it. */
export const exportDatabaseCommand: Command = {
  path: ["database", "export"],
  summary: "Write a project to one database file, for a backup or another machine.",
  flags: [
    { name: "file", kind: "text", description: "File to create. It must not exist.", placeholder: "path", required: true },
    SCOPE,
    WITH_CODE,
    WITHOUT_DELETED,
  ],
  positional: ["file"],
  examples: [
    "cairn database export project.db",
    "cairn database export project.db --with-code",
    "cairn database export shared.db --scope shared",
  ],
  usesProject: true,
  async run(call) {
    const file = fileOf(call);
    const { damaged } = await withProgress(call, "copied", (cairn, options) => cairn.transfer.export(projectFileOf(call, file), options));
    const bytes = statSync(file).size;
    if (damaged.length > 0) call.endWith(EXIT_ATTENTION);
    if (call.json) printJson(call.host, { file, bytes, ...damagedField(damaged) });
    else
      print(
        call.host,
        [
          `Wrote the project to ${file} (${bytes} bytes) and verified the file.`,
          ...(damaged.length > 0
            ? [`${damaged.length} records in it are damaged, and every read skips them. Set them aside with: cairn doctor --repair`]
            : []),
        ].join("\n"),
      );
  },
};

/** `cairn database import`: may be repeated; existing records stay unchanged. */
export const importDatabaseCommand: Command = {
  path: ["database", "import"],
  summary: "Import checkpoints and knowledge from a database file. Existing records stay unchanged.",
  description: "The file is not changed. Records are embedded with the configured model. --with-code also imports the code index.",
  flags: [
    { name: "file", kind: "text", description: "File that `cairn database export` wrote.", placeholder: "path", required: true },
    SCOPE,
    WITH_CODE,
    WITHOUT_DELETED,
  ],
  positional: ["file"],
  examples: ["cairn database import project.db", "cairn database import project.db --project /srv/other"],
  usesProject: true,
  async run(call) {
    const file = fileOf(call);
    const result = await withProgress(call, "imported", (cairn, options) => cairn.transfer.import(projectFileOf(call, file), options));
    if (result.checkpoints.failed + result.knowledge.failed > 0) call.endWith(EXIT_ATTENTION);
    if (call.json) return printJson(call.host, result);
    print(
      call.host,
      [
        `From ${result.from}:`,
        ...importText("checkpoints", result.checkpoints),
        ...importText("knowledge", result.knowledge),
        CODE_TEXT[result.code],
      ].join("\n"),
    );
  },
};

const CODE_TEXT: Readonly<Record<TransferReport["code"], string>> = {
  imported: "  code index: imported",
  present: "  code index: the project already has one, which stays unchanged",
  "not imported": "  code index: not imported; build it with: cairn code index",
};

function importText(what: string, { imported, present, failed, problems }: ImportCounts): string[] {
  return [
    `  ${what}: ${imported} imported, ${present} already present, ${failed} failed`,
    ...problems.map((problem) => `    ${problem}`),
    ...(failed > problems.length ? [`    … and ${failed - problems.length} more`] : []),
  ];
}

function fileOf({ host, values }: Call): string {
  if (values.file === undefined) throw usage("<file> is missing. Give the path of a database file.");
  return filePath(host, values.file);
}

function projectFileOf(call: Call, file: string): ProjectFile {
  const { "with-code": withCode, "without-deleted": withoutDeleted } = call.values;
  return { projectPath: databaseIdOf(call), file, withCode: withCode === true, withoutDeleted: withoutDeleted === true };
}

function databaseIdOf({ values: { scope = "project" }, project }: Call): string {
  if (scope === "shared") return SHARED_PROJECT_ID;
  if (scope !== "project") throw usage("--scope must be project or shared.");
  return project().repository;
}

interface Options {
  readonly signal: AbortSignal;
  readonly progress: (done: number) => void;
}

async function withProgress<T>(call: Call, done: string, work: (cairn: Cairn, options: Options) => Promise<T>): Promise<T> {
  const cairn = await openFromConfig(call.config().config);
  const bar = progressBar(call.host);
  try {
    return await work(cairn, { signal: call.host.signal, progress: (count) => bar.update(count, undefined, done) });
  } finally {
    bar.clear();
    await cairn.close();
  }
}
