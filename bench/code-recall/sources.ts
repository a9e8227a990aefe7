import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readSource } from "../../src/client/files/read-source.ts";
import { resolveRoot } from "../../src/client/files/root.ts";
import { walk } from "../../src/client/files/walk.ts";
import { root } from "../frame.ts";
import type { QuestionSet } from "./question-set.ts";

export interface Source {
  readonly path: string;
  readonly content: string;
}

/** Returns the folder with the set's sources: downloaded from npm, verified and cached. */
export async function treeOf(set: QuestionSet): Promise<string> {
  const cache = join(root, ".cache", "code-recall");
  const folder = join(cache, `${set.name}-${set.sha256.slice(0, 16)}`);
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true });
    const work = mkdtempSync(join(cache, "download-"));
    try {
      run("npm", ["pack", `${set.package}@${set.version}`, "--ignore-scripts", "--silent", "--pack-destination", work], work);
      const archive = join(work, readdirSync(work).find((name) => name.endsWith(".tgz"))!);
      const sha256 = createHash("sha256").update(readFileSync(archive)).digest("hex");
      if (sha256 !== set.sha256)
        throw new Error(`${set.package} ${set.version} has another checksum than the questions expect: ${sha256}.`);
      run("tar", ["-xzf", archive], work);
      renameSync(join(work, "package"), folder); // atomically
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return resolveRoot(join(folder, set.folder));
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

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
  if (status !== 0) throw new Error(`${command} ${args[0]} ended with ${error?.message ?? status}.`);
}
