import { statSync } from "node:fs";
import type { ImportCounts, TransferReport } from "../admin/transfer.ts";
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
  description: "shared: the knowledge for all projects. Default: this project.",
  choices: ["project", "shared"],
};

const WITH_CODE: Flag = {
  name: "with-code",
  kind: "switch",
  description: "Carry the code index too, in a file <name>.code.db next to it. Default: cairn code index builds it again.",
};

/** `cairn database export`: the project as one file, also while others work with it. */
export const exportDatabaseCommand: Command = {
  path: ["database", "export"],
  summary: "Write a project to one database file, for a backup or to carry it elsewhere.",
  flags: [
    { name: "file", kind: "text", description: "Where to; must not be there yet.", placeholder: "path", required: true },
    SCOPE,
    WITH_CODE,
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
    const { damaged } = await withProgress(call, "copied", (cairn, options) =>
      cairn.transfer.export({ projectPath: placeOf(call), file, withCode: call.values["with-code"] === true }, options),
    );
    const bytes = statSync(file).size;
    const shown = damagedField(damaged);
    if (damaged.length > 0) call.endWith(EXIT_ATTENTION);
    if (call.json) printJson(call.host, { file, bytes, ...shown });
    else
      print(
        call.host,
        [
          `The project was written to ${file} (${bytes} bytes) and the file checked.`,
          ...(damaged.length > 0
            ? [`${damaged.length} damaged records will be skipped by every read of it. Set them aside with: cairn doctor --repair`]
            : []),
        ].join("\n"),
      );
  },
};

/** `cairn database import`: may be repeated; what is there already stays. */
export const importDatabaseCommand: Command = {
  path: ["database", "import"],
  summary: "Take over checkpoints and knowledge from a project's database file. Those that are there already stay as they are.",
  description:
    "The file is read, never changed. Vectors are made anew with the model that is set; code is indexed again from its files, unless --with-code takes the index over.",
  flags: [
    { name: "file", kind: "text", description: "What `cairn database export` wrote.", placeholder: "path", required: true },
    SCOPE,
    WITH_CODE,
  ],
  positional: ["file"],
  examples: ["cairn database import project.db", "cairn database import project.db --project /srv/other"],
  usesProject: true,
  async run(call) {
    const file = fileOf(call);
    const told = await withProgress(call, "imported", (cairn, options) =>
      cairn.transfer.import({ projectPath: placeOf(call), file, withCode: call.values["with-code"] === true }, options),
    );
    if (told.checkpoints.failed + told.knowledge.failed > 0) call.endWith(EXIT_ATTENTION);
    if (call.json) return printJson(call.host, told);
    print(
      call.host,
      [
        `From ${told.from}:`,
        ...takenText("checkpoints", told.checkpoints),
        ...takenText("knowledge", told.knowledge),
        CODE_TEXT[told.code],
      ].join("\n"),
    );
  },
};

const CODE_TEXT: Readonly<Record<TransferReport["code"], string>> = {
  imported: "  code index: imported",
  present: "  code index: the project has one, which stays as it is",
  "not imported": "  code index: not imported; build it with: cairn code index",
};

function takenText(what: string, { imported, present, failed, problems }: ImportCounts): string[] {
  return [
    `  ${what}: ${imported} imported, ${present} were there already, ${failed} could not be stored`,
    ...problems.map((problem) => `    ${problem}`),
    ...(failed > problems.length ? [`    … and ${failed - problems.length} more`] : []),
  ];
}

function fileOf({ host, values }: Call): string {
  if (values.file === undefined) throw usage("<file> is missing.");
  return filePath(host, values.file);
}

function placeOf({ values: { scope = "project" }, project }: Call): string {
  if (scope === "shared") return SHARED_PROJECT_ID;
  if (scope !== "project") throw usage("--scope: is project or shared.");
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
