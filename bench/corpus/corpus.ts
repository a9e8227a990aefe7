import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readSource } from "../../src/client/files/read-source.ts";
import { resolveRoot } from "../../src/client/files/root.ts";
import { walk } from "../../src/client/files/walk.ts";
import { root } from "../frame.ts";

interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** The checksum of the archive, as a lock file has it: `sha512-` and base64. */
  readonly integrity: string;
}

export interface CorpusFile {
  readonly path: string;
  readonly content: string;
}

/** Returns the folder of the corpus: named versions of npm packages, downloaded once, verified by checksum and cached. */
export async function corpusFolder(): Promise<string> {
  const packages = JSON.parse(readFileSync(join(root, "bench", "corpus", "packages.json"), "utf8")) as readonly PinnedPackage[];
  const cache = join(root, ".cache", "corpus");
  const folder = join(cache, createHash("sha256").update(JSON.stringify(packages)).digest("hex").slice(0, 16));
  if (!existsSync(folder)) {
    process.stderr.write(`Downloading ${packages.length} packages for the corpus …\n`);
    mkdirSync(cache, { recursive: true });
    const work = mkdtempSync(join(cache, "download-"));
    try {
      download(packages, work);
      renameSync(join(work, "tree"), folder); // atomically
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return resolveRoot(folder);
}

/** Returns the number of files that the option `--files` asks for, or the default. */
export function countOf(option: string | undefined, standard: number): number {
  const files = option === undefined ? standard : Number(option);
  if (!(files > 0)) throw new Error(`--files takes a number above 0, not ${option}.`);
  return files;
}

/** Reads the files of the corpus that are indexed. With a limit, takes every n-th file, so that all packages and sizes are represented. */
export async function readCorpus(limit: number): Promise<CorpusFile[]> {
  const folder = await corpusFolder();
  const paths: string[] = [];
  for await (const entry of walk(folder, { ignoreRules: false })) if (entry.type === "file") paths.push(entry.path);
  const step = Math.ceil(paths.length / limit);
  const chosen = paths.sort().filter((_, index) => index % Math.max(1, step) === 0);
  const read = await Promise.all(chosen.map(async (path) => ({ path, source: await readSource(folder, path) })));
  return read.flatMap(({ path, source }) => (source.type === "source" ? [{ path, content: source.content }] : []));
}

function download(packages: readonly PinnedPackage[], work: string): void {
  const archives = join(work, "archives");
  mkdirSync(archives);
  const specs = packages.map(({ name, version }) => `${name}@${version}`);
  run("npm", ["pack", ...specs, "--ignore-scripts", "--silent", "--pack-destination", archives], work);
  const byIntegrity = new Map(
    readdirSync(archives).map((name) => {
      const bytes = readFileSync(join(archives, name));
      return [`sha512-${createHash("sha512").update(bytes).digest("base64")}`, join(archives, name)];
    }),
  );
  for (const { name, version, integrity } of packages) {
    const archive = byIntegrity.get(integrity);
    if (archive === undefined) throw new Error(`${name} ${version} has another checksum than bench/corpus/packages.json has.`);
    const target = join(work, "tree", name);
    mkdirSync(target, { recursive: true });
    run("tar", ["-xzf", archive, "--strip-components=1", "-C", target], work);
  }
}

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ["ignore", "ignore", 2], shell: process.platform === "win32" });
  if (status !== 0) throw new Error(`${command} ${args[0]} ended with ${error?.message ?? status}.`);
}
