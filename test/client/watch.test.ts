import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openHashCache } from "../../src/client/files/hash-cache.ts";
import type { IndexTarget } from "../../src/client/jobs/index-target.ts";
import { indexTree } from "../../src/client/jobs/index-tree.ts";
import type { Job } from "../../src/client/jobs/job.ts";
import { tally } from "../../src/client/jobs/tally.ts";
import { folderWatch } from "../../src/client/watch/watch-folders.ts";
import { type WatchOptions, watchProject } from "../../src/client/watch/watch-project.ts";
import { CairnError } from "../../src/model/errors.ts";
import { sha256Hex } from "../../src/model/ids.ts";

let folder: string;
let root: string;
let stop: AbortController;
let ended: Promise<void>;
/** What the index has, by path. */
let index: Map<string, string>;
let runs: number;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-watch-")));
  root = join(folder, "tree");
  mkdirSync(root);
  stop = new AbortController();
  index = new Map();
  runs = 0;
});
afterEach(async () => {
  stop.abort();
  await ended;
  rmSync(folder, { recursive: true });
});

function write(path: string, content: string): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), content);
}

const target: IndexTarget = {
  atOnce: 2,
  hashes: async (paths) => new Map(paths.flatMap((path) => (index.has(path) ? [[path, index.get(path)!] as const] : []))),
  async send(files) {
    for (const { path, hash } of files) index.set(path, hash!);
    return files.map(({ path }) => ({ path, status: "indexed" as const, chunks: 1 }));
  },
  async finish(manifest) {
    const gone = [...index.keys()].filter((path) => !manifest.includes(path));
    for (const path of gone) index.delete(path);
    return { removed: gone.length, renamed: 0 };
  },
  counts: async () => ({ files: index.size, chunks: index.size }),
  report: async () => ({ cancelRequested: false }),
};

/** Watches, quicker than people need it, and resolves after the first look. */
async function watch(options: Partial<WatchOptions> = {}): Promise<void> {
  const cache = await openHashCache(join(folder, "cache"), root);
  ended = watchProject({
    settleMs: 20,
    pauseAfterFailureMs: 20,
    signal: stop.signal,
    async index(onFolder, signal) {
      const counting = tally();
      await indexTree({ root, target, cache, tally: counting, signal, onFolder });
      return { ...counting.state(), status: "completed" } as Job;
    },
    ...options,
    async onIndexed(outcome) {
      runs++;
      await options.onIndexed?.(outcome);
    },
  });
  await until(() => runs > 0);
}
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}
const has = (path: string, content: string) => index.get(path) === sha256Hex(content);

describe("a watch", () => {
  it("indexes the tree, and then every edit, new file, new folder and deletion", async () => {
    write("a.py", "a = 1");
    await watch();
    expect(has("a.py", "a = 1")).toBe(true);
    write("a.py", "a = 2");
    await until(() => has("a.py", "a = 2"));
    write("new/deep/b.py", "b = 1");
    await until(() => has("new/deep/b.py", "b = 1"));
    write("new/deep/b.py", "b = 2");
    await until(() => has("new/deep/b.py", "b = 2"));
    rmSync(join(root, "a.py"));
    await until(() => !index.has("a.py"));
  });

  it("follows renamed, deleted and recreated folders", async () => {
    write("x/one.py", "one");
    write("x/y/two.py", "two");
    await watch();
    renameSync(join(root, "x"), join(root, "z"));
    await until(() => has("z/y/two.py", "two") && !index.has("x/y/two.py"));
    write("z/y/two.py", "two, edited");
    await until(() => has("z/y/two.py", "two, edited"));
    write("kept.py", "kept");
    rmSync(join(root, "z"), { recursive: true });
    await until(() => index.size === 1);
    write("z/y/three.py", "three");
    await until(() => has("z/y/three.py", "three"));
  });

  it("indexes a flood of changes in a few runs", async () => {
    write("first.py", "first");
    await watch();
    const before = runs;
    for (let n = 0; n < 2_000; n++) write(`flood/${n % 40}/f${n}.py`, `f = ${n}`);
    await until(() => index.size === 2_001);
    expect(runs - before).toBeLessThan(20);
  });

  it("does not run for ignored files", async () => {
    write(".gitignore", "*.log\nout/\n");
    write("out/made.py", "made");
    write("a.py", "a");
    await watch();
    const before = runs;
    for (let n = 0; n < 20; n++) {
      write("server.log", `line ${n}`);
      write("out/made.py", `made ${n}`);
      write("picture.png", `${n}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(runs).toBe(before);
    write("b.py", "b");
    await until(() => has("b.py", "b"));
    expect([...index.keys()].sort()).toEqual([".gitignore", "a.py", "b.py"]);
  });

  it("polls when there are more folders than it may watch", async () => {
    for (let n = 0; n < 10; n++) write(`d${n}/f.py`, "f");
    await watch({ maxFolders: 3, pollMs: 30 });
    write("d9/f.py", "f, edited");
    await until(() => has("d9/f.py", "f, edited"));
  });

  it("runs periodically, because events can be lost", async () => {
    write("a.py", "a");
    await watch({ rescanMs: 30 });
    const before = runs;
    await until(() => runs > before + 2);
  });

  it("continues after the tree was unavailable", async () => {
    write("a.py", "a");
    const failures: unknown[] = [];
    await watch({ rescanMs: 30, onIndexed: (outcome) => void (outcome instanceof CairnError && failures.push(outcome.code)) });
    renameSync(root, `${root}.away`);
    await until(() => failures.length > 0);
    expect(index.size).toBe(1);
    renameSync(`${root}.away`, root);
    write("b.py", "b");
    await until(() => has("b.py", "b"));
  });

  it("continues after a failed index run", async () => {
    write("a.py", "a");
    let fails = 2;
    await watch({
      async index(onFolder, signal) {
        if (fails-- > 0) throw new CairnError("unavailable", "the disk is full");
        const cache = await openHashCache(join(folder, "cache"), root);
        const counting = tally();
        await indexTree({ root, target, cache, tally: counting, signal, onFolder });
        return { ...counting.state(), status: "completed" } as Job;
      },
    });
    await until(() => has("a.py", "a"));
  });
});

describe("watches on folders", () => {
  it("are closed for folders that are not retained", async () => {
    const folders = Array.from({ length: 5 }, (_, n) => join(root, `d${n}`));
    for (const one of folders) mkdirSync(one);
    const watching = folderWatch({ onChange: () => {}, maxFolders: 4 });
    const rules = { ignores: () => false, explain: () => undefined, into: async () => rules };
    for (const one of folders) watching.add(one, rules);
    expect(watching.incomplete).toBe(true);
    watching.retain(new Set(folders.slice(0, 2)));
    expect(watching.incomplete).toBe(false);
    watching.add(join(root, "never"), rules);
    expect(watching.incomplete).toBe(false);
    watching.close();
    ended = Promise.resolve();
  });
});
