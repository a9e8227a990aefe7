import { mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { PROJECT_FILE } from "../config/load.ts";
import { proposedSettings } from "../config/proposed.ts";
import { readTrusted, type TrustedFolder, trustFile, trustText } from "../config/trust.ts";
import { isFolder } from "../files/is-folder.ts";
import { shortPath } from "../files/regular-file.ts";
import { CairnError } from "../model/errors.ts";
import { withFileLock } from "../stores/file/lock.ts";
import { replaceFile } from "../stores/file/replace-file.ts";
import { usage } from "./argv.ts";
import type { Call, Command } from "./command.ts";
import { type Host, print, printJson } from "./host.ts";
import { findProject } from "./project.ts";
import { escapeControls } from "./terminal/style.ts";

/** `cairn trust`: lets the project file of a folder set every key, until the file changes. */
export const trustCommand: Command = {
  path: ["trust"],
  summary: "Let a project's cairn.config.json set every key, until the file changes.",
  description:
    "A project file comes with the repository, so it may set only safe keys until you trust it. Shows what the file sets and asks; --yes confirms.",
  flags: [
    { name: "folder", kind: "text", description: "A folder of the project. Default: the current one.", placeholder: "path" },
    { name: "yes", kind: "switch", description: "Trust the file without asking.", fallback: false },
    { name: "list", kind: "switch", description: "List trusted folders.", fallback: false },
    { name: "revoke", kind: "switch", description: "Stop trusting the folder.", fallback: false },
  ],
  positional: ["folder"],
  examples: ["cairn trust", "cairn trust ~/app --yes", "cairn trust --list", "cairn trust ~/app --revoke"],
  usesProject: false,
  async run(call) {
    const { values } = call;
    if (values.list === true && values.revoke === true) throw usage("--list and --revoke cannot be combined.");
    if (values.list === true) return list(call);
    return values.revoke === true ? revoke(call) : trust(call);
  },
};

async function trust({ host, json, values }: Call): Promise<void> {
  const { tree } = findProject(values.folder as string | undefined, host.cwd);
  const file = join(tree, PROJECT_FILE);
  const { sha256, settings } = proposedSettings(file, host.home);
  const lines = settings.map(({ key, value }) => `  ${key} = ${value}`);
  const text = lines.length > 0 ? `${file} sets:\n${lines.join("\n")}` : `${file} sets nothing that needs trust.`;
  if (!json) print(host, escapeControls(text));
  if (values.yes !== true && !(await confirm(host))) {
    throw new CairnError("forbidden", "Nothing was trusted. If you trust what the file sets, repeat the command with --yes.");
  }
  const entry: TrustedFolder = { path: tree, sha256, trusted_at: host.now().toISOString() };
  await update(host, (folders) => [...folders.filter(({ path }) => path !== tree), entry]);
  if (json) printJson(host, { ...entry, settings });
  else print(host, `Trusted ${tree}, until ${PROJECT_FILE} changes.`);
}

async function revoke({ host, json, values }: Call): Promise<void> {
  const named = resolve(host.cwd, String(values.folder ?? "."));
  // A deleted folder can be revoked by its path.
  const path = isFolder(named) ? findProject(named, host.cwd).tree : named;
  let found = false;
  await update(host, (folders) => {
    found = folders.some((one) => one.path === path);
    return folders.filter((one) => one.path !== path);
  });
  if (!found) throw new CairnError("not_found", `${shortPath(path)} is not trusted. See: cairn trust --list`);
  if (json) printJson(host, { revoked: path });
  else print(host, `Revoked the trust in ${path}.`);
}

async function list({ host, json }: Call): Promise<void> {
  const folders = readList(host);
  if (json) return printJson(host, { folders });
  print(
    host,
    folders.length === 0 ? "No folder is trusted." : folders.map(({ path, trusted_at: at }) => `${at}  ${escapeControls(path)}`).join("\n"),
  );
}

async function update(host: Host, change: (folders: readonly TrustedFolder[]) => readonly TrustedFolder[]): Promise<void> {
  const path = trustFile(host.home);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await withFileLock(`${path}.lock`, () => replaceFile(path, trustText(change(readList(host)))));
}

/** Does not overwrite a list that cannot be read. */
function readList({ home }: Host): readonly TrustedFolder[] {
  const problems: Parameters<typeof readTrusted>[1] = [];
  const folders = readTrusted(home, problems);
  const [problem] = problems;
  if (problem) throw new CairnError("unavailable", `${problem.where} ${problem.problem}`);
  return folders;
}

/** Asks the user. Returns false without a terminal. */
async function confirm({ stdin, stdout, signal }: Host): Promise<boolean> {
  if (!stdin.isTTY || !stdout.isTTY) return false;
  const terminal = createInterface({ input: stdin, output: stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question("Trust this file? [y/N] ", { signal })).trim());
  } finally {
    terminal.close();
  }
}
