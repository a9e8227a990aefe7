import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { clearLedger, ledgerFile, ledgerFolder, openLedger } from "../../client/adopt/ledger.ts";
import { projectFinder } from "../../client/adopt/project-finder.ts";
import { ADOPT_TOOLS, type AdoptHost, type AdoptTool } from "../../client/adopt/reader.ts";
import { READERS } from "../../client/adopt/readers.ts";
import { removeAdopted } from "../../client/adopt/remove-adopted.ts";
import { runAdopt } from "../../client/adopt/run-adopt.ts";
import { leases } from "../../client/jobs/lease.ts";
import { CairnError } from "../../model/errors.ts";
import { newId } from "../../model/ids.ts";
import { openForeignDatabase } from "../../stores/sqlite/driver/foreign-database.ts";
import { redactor } from "../../text/redact.ts";
import { usage } from "../argv.ts";
import type { Call, Command } from "../command.ts";
import { EXIT_ATTENTION } from "../exit-code.ts";
import { print, printJson } from "../host.ts";
import { type ProgressBar, progressBar } from "../terminal/progress-bar.ts";
import { adoptData, adoptText, removedText } from "./adopt-report.ts";
import { type OpenedTarget, openTarget } from "./adopt-target.ts";

/** `cairn adopt`: imports the sessions and notes of other tools on this machine, or removes what it imported. */
export const adoptCommand: Command = {
  path: ["adopt"],
  summary: "Import sessions and notes that other agents left on this machine.",
  description:
    "A session becomes a checkpoint in the project of its folder; a note becomes knowledge. The originals stay unchanged, secrets are redacted, and a second run imports only what is new.",
  flags: [
    { name: "dry-run", kind: "switch", description: "Only report what was found.", fallback: false },
    { name: "from", kind: "list", description: `Only these tools: ${ADOPT_TOOLS.join(", ")}.`, placeholder: "tools" },
    { name: "remove", kind: "switch", description: "Delete everything that adopt imported, and nothing else.", fallback: false },
  ],
  positional: [],
  examples: ["cairn adopt --dry-run", "cairn adopt", "cairn adopt --from claude-code,codex", "cairn adopt --remove"],
  usesProject: false,
  async run(call) {
    const { host, values } = call;
    const tools = toolsOf(values.from as readonly string[] | undefined);
    if (values.remove === true && tools.length < ADOPT_TOOLS.length) throw usage("--remove cannot be combined with --from.");
    const { config } = call.config();
    const bar = progressBar(host);
    const opened = await openTarget(config, host.signal);
    try {
      const lost = new AbortController();
      const release = await acquire(config.dataDir, opened.name, () => lost.abort());
      try {
        const run = values.remove === true ? runRemove : runImport;
        await run(call, { opened, tools, bar, signal: AbortSignal.any([host.signal, lost.signal]) });
      } finally {
        await release();
      }
    } finally {
      bar.clear();
      await opened.close();
    }
  },
};

interface Run {
  readonly opened: OpenedTarget;
  readonly tools: readonly AdoptTool[];
  readonly bar: ProgressBar;
  readonly signal: AbortSignal;
}

async function runImport(call: Call, { opened, tools, bar, signal }: Run): Promise<void> {
  const { host, values } = call;
  const { dataDir, redaction } = call.config().config;
  const scratch = join(ledgerFolder(dataDir), "copies");
  await rm(scratch, { recursive: true, force: true }); // of a run that was killed
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  const ledger = await openLedger(ledgerFile(dataDir, opened.name), signal);
  try {
    const dryRun = values["dry-run"] === true;
    const { home, env } = host;
    const machine: AdoptHost = {
      home,
      env,
      folder: call.project().tree,
      scratch,
      redact: redactor(redaction),
      openDatabase: openForeignDatabase,
    };
    const report = await runAdopt({
      readers: tools.map((tool) => READERS[tool]),
      host: machine,
      ledger,
      target: opened.target,
      findProject: projectFinder(home),
      dryRun,
      now: host.now,
      signal,
      progress: (done, total, message) => bar.update(Math.ceil(done / 1e6), Math.ceil(total / 1e6), `MB  ${message}`),
    });
    bar.clear();
    if (call.json) printJson(host, adoptData(report, dryRun));
    else print(host, adoptText(report, dryRun, host));
    if (report.problems.length > 0) call.endWith(EXIT_ATTENTION);
  } finally {
    await ledger.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function runRemove(call: Call, { opened, bar, signal }: Run): Promise<void> {
  const path = ledgerFile(call.config().config.dataDir, opened.name);
  const dryRun = call.values["dry-run"] === true;
  const ledger = await openLedger(path, signal);
  const places = ledger.entries().flatMap((entry) => entry.places.map((place) => place ?? undefined));
  await ledger.close();
  const report = await removeAdopted({ target: opened.target, places, dryRun, signal, progress: bar.update });
  if (!dryRun) await clearLedger(path);
  bar.clear();
  const { notExamined, ...counts } = report;
  if (call.json) printJson(call.host, { dry_run: dryRun, ...counts, not_examined: notExamined });
  else print(call.host, removedText(report, dryRun));
  if (notExamined > 0) call.endWith(EXIT_ATTENTION);
}

/** Lets one process adopt at a time. Returns the function that ends it. */
async function acquire(dataDir: string, target: string, onLost: () => void): Promise<() => Promise<void>> {
  const held = leases(ledgerFolder(dataDir));
  const lease = await held.acquire(target, newId());
  if ("heldBy" in lease) throw new CairnError("conflict", "Another cairn adopt is running. Wait until it has ended, then try again.");
  const { release } = await held.hold(lease, onLost);
  return release;
}

function toolsOf(given: readonly string[] | undefined): readonly AdoptTool[] {
  const names = (given ?? []).flatMap((text) => text.split(",")).map((name) => name.trim());
  const unknown = names.find((name) => !ADOPT_TOOLS.some((tool) => tool === name));
  if (unknown !== undefined) throw usage(`--from: ${JSON.stringify(unknown.slice(0, 60))} is not one of ${ADOPT_TOOLS.join(", ")}.`);
  return names.length === 0 ? ADOPT_TOOLS : ADOPT_TOOLS.filter((tool) => names.includes(tool));
}
