import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readSource } from "../../src/client/files/read-source.ts";
import { resolveRoot } from "../../src/client/files/root.ts";
import { walk } from "../../src/client/files/walk.ts";
import { root } from "../frame.ts";
import type { QuestionSet } from "./question-set.ts";

export interface Source {
  readonly path: string;
  readonly content: string;
}

/** Returns the folder with the set's sources: downloaded from its registry, verified and cached. */
export async function treeOf(set: QuestionSet): Promise<string> {
  const cache = join(root, ".cache", "code-recall");
  const folder = join(cache, `${set.name}-${set.sha256.slice(0, 16)}`);
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true });
    const work = mkdtempSync(join(cache, "download-"));
    try {
      renameSync(set.registry === "crates.io" ? downloadCrate(set, work) : downloadPackage(set, work), folder); // atomically
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return resolveRoot(join(folder, set.folder));
}

/** Whether the client of the set's registry is installed. Rust sources need cargo. */
export function canDownload({ registry }: QuestionSet): boolean {
  return registry !== "crates.io" || spawnSync("cargo", ["--version"]).status === 0;
}

function downloadPackage(set: QuestionSet, work: string): string {
  run("npm", ["pack", `${set.package}@${set.version}`, "--ignore-scripts", "--silent", "--pack-destination", work], work);
  const archive = join(work, readdirSync(work).find((name) => name.endsWith(".tgz"))!);
  verify(set, createHash("sha256").update(readFileSync(archive)).digest("hex"));
  run("tar", ["-xzf", archive], work);
  return join(work, "package");
}

/** Lets cargo download and verify the crate. Its lock file has the checksum of the archive. */
function downloadCrate(set: QuestionSet, work: string): string {
  mkdirSync(join(work, "src"));
  writeFileSync(join(work, "src", "lib.rs"), "");
  const dependency = `[dependencies]\n${set.package} = "=${set.version}"\n`;
  writeFileSync(join(work, "Cargo.toml"), `[package]\nname = "download"\nversion = "0.0.0"\nedition = "2021"\n${dependency}`);
  const { packages } = JSON.parse(run("cargo", ["metadata", "--format-version", "1"], work)) as {
    packages: readonly { readonly name: string; readonly version: string; readonly manifest_path: string }[];
  };
  const lock = readFileSync(join(work, "Cargo.lock"), "utf8").split("[[package]]");
  const entry = lock.find((one) => one.includes(`name = "${set.package}"\nversion = "${set.version}"\n`));
  verify(set, /checksum = "([0-9a-f]{64})"/.exec(entry ?? "")?.[1] ?? "none");
  const { manifest_path } = packages.find(({ name, version }) => name === set.package && version === set.version)!;
  cpSync(dirname(manifest_path), join(work, "crate"), { recursive: true });
  return join(work, "crate");
}

function verify(set: QuestionSet, sha256: string): void {
  if (sha256 !== set.sha256) throw new Error(`${set.package} ${set.version} has another checksum than the questions expect: ${sha256}.`);
}

export async function readTree(tree: string): Promise<Source[]> {
  const sources: Source[] = [];
  for await (const entry of walk(tree, { ignoreRules: false })) {
    if (entry.type !== "file") continue;
    const source = await readSource(tree, entry.path);
    if (source.type === "source") sources.push(source);
  }
  return sources;
}

/** Runs a command and returns its standard output. */
function run(command: string, args: readonly string[], cwd: string): string {
  const { status, error, stdout } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", 2],
    shell: process.platform === "win32",
  });
  if (status !== 0) throw new Error(`${command} ${args[0]} ended with ${error?.message ?? status}.`);
  return stdout;
}
