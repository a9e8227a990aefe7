import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { walk } from "../../src/client/files/walk.ts";
import { entries, lines, tree } from "./tree.ts";

const trees: ReturnType<typeof tree>[] = [];

function plant(files: Parameters<typeof tree>[0] = {}): string {
  const planted = tree(files);
  trees.push(planted);
  return planted.root;
}

afterEach(() => {
  for (const { remove } of trees.splice(0)) remove();
});

describe("a walk", () => {
  it("yields every file with its size and times, in an order that depends only on the names", async () => {
    const root = plant({ "b.ts": "bb", "a/z.ts": "z", "a.ts": "", "a/b/c.ts": "ccc", "Z.md": "# Z" });
    utimesSync(join(root, "b.ts"), 1, 2);
    expect(await lines(root)).toEqual(["Z.md", "a/b/c.ts", "a/z.ts", "a.ts", "b.ts"]);
    expect(await lines(root)).toEqual(await lines(root));
    expect((await entries(root)).at(-1)).toEqual({ type: "file", path: "b.ts", sizeBytes: 2, mtimeMs: 2_000, ctimeMs: expect.any(Number) });
  });

  it("reports excluded entries, and an excluded folder once", async () => {
    const root = plant({
      ".gitignore": "*.log\n/build/\n",
      "a.log": "",
      "build/deep/x.js": "",
      "src/b.log": "",
      "src/build/kept.ts": "",
      "node_modules/x/index.js": "",
      "logo.PNG": "",
      "package-lock.json": "{}",
      "lib/app.min.js": "",
      "app.js.map": "{}",
      "big.txt": "x".repeat(11),
    });
    expect(await lines(root, { limitBytes: 10 })).toEqual([
      ".gitignore: too_large",
      "a.log: ignored",
      "app.js.map: generated",
      "big.txt: too_large",
      "build/: ignored",
      "lib/app.min.js: generated",
      "logo.PNG: binary",
      "node_modules/: ignored",
      "package-lock.json: generated",
      "src/b.log: ignored",
      "src/build/kept.ts",
    ]);
  });

  it("skips files that are deleted during the walk", async () => {
    const names = Array.from({ length: 100 }, (_, n) => `f${String(n).padStart(3, "0")}.ts`);
    const root = plant({ "a/first.ts": "", ...Object.fromEntries(names.map((name) => [name, ""])) });
    const seen: string[] = [];
    for await (const entry of walk(root)) {
      if (seen.length === 0) for (const name of names.slice(40)) rmSync(join(root, name));
      seen.push(`${entry.type} ${entry.path}`);
    }
    // Files are looked at a few dozen at a time; earlier ones are still returned.
    expect(seen.filter((line) => !line.startsWith("file "))).toEqual([]);
    expect(seen.slice(0, 41)).toEqual(["file a/first.ts", ...names.slice(0, 40).map((name) => `file ${name}`)]);
    expect(seen.length).toBeLessThan(names.length);
  });

  it("never enters the data folders of version control systems", async () => {
    expect(await lines(plant({ ".git/config": "x", "sub/.hg/store": "x", "a.ts": "" }))).toEqual(["a.ts"]);
  });

  it("lets .cairnignore exclude more, and include what git ignores", async () => {
    const root = plant({
      ".gitignore": "gen/\n",
      ".cairnignore": "!gen/\ndocs/\n",
      "gen/a.ts": "",
      "docs/a.md": "",
      "sub/.cairnignore": "*\n",
      "sub/x": "",
    });
    expect(await lines(root)).toEqual([
      ".cairnignore",
      ".gitignore",
      "docs/: ignored",
      "gen/a.ts",
      "sub/.cairnignore: ignored",
      "sub/x: ignored",
    ]);
  });

  it("yields everything when the ignore rules are off", async () => {
    const root = plant({ ".gitignore": "*\n", "node_modules/a/index.js": "", "x.ts": "" });
    expect(await lines(root, { ignoreRules: false })).toEqual([".gitignore", "node_modules/a/index.js", "x.ts"]);
  });

  it("applies the rules above the root, .git/info/exclude, and those of a linked working tree", async () => {
    const root = plant({ ".gitignore": "*.tmp\n/pkg/out/\n", "pkg/a.tmp": "", "pkg/out/x": "", "pkg/a.ts": "", "pkg/private.ts": "" });
    const git = (...args: string[]) => execFileSync("git", ["-C", root, "-c", "user.name=t", "-c", "user.email=t@example.org", ...args]);
    git("init", "-q");
    writeFileSync(join(root, ".git/info/exclude"), "private.ts\n");
    expect(await lines(join(root, "pkg"))).toEqual(["a.tmp: ignored", "a.ts", "out/: ignored", "private.ts: ignored"]);

    git("add", "-f", ".");
    git("commit", "-qm", "all");
    const second = plant();
    git("worktree", "add", "-q", join(second, "wt"));
    expect(await lines(join(second, "wt/pkg"))).toEqual(["a.tmp: ignored", "a.ts", "out/: ignored", "private.ts: ignored"]);
  });

  it("walks an ignored folder that is the root", async () => {
    const root = plant({
      ".git/HEAD": "ref: refs/heads/main\n",
      ".gitignore": "vendor/\n*.ts\n",
      "vendor/lib/a.ts": "",
      "vendor/.gitignore": "b.ts\n",
      "vendor/b.ts": "",
    });
    expect(await lines(join(root, "vendor"))).toEqual([".gitignore", "b.ts: ignored", "lib/a.ts"]);
    expect(await lines(join(root, "vendor/lib"))).toEqual(["a.ts"]);
  });

  it("never follows a symbolic link: not out of the root, not in a cycle, not to a missing target", async () => {
    const outside = plant({ "secret.ts": "secret" });
    const root = plant({ "real/a.ts": "" });
    symlinkSync(join(outside, "secret.ts"), join(root, "file-out.ts"));
    symlinkSync(outside, join(root, "folder-out"));
    symlinkSync("..", join(root, "real/loop"));
    symlinkSync("real", join(root, "alias"));
    symlinkSync("gone", join(root, "nowhere"));
    symlinkSync("self", join(root, "self"));
    expect((await entries(root)).map((entry) => [entry.path, "detail" in entry ? entry.detail : entry.type])).toEqual([
      ["alias", "the target is inside the root"],
      ["file-out.ts", "the target is outside the root"],
      ["folder-out", "the target is outside the root"],
      ["nowhere", "the target does not exist"],
      ["real/a.ts", "file"],
      ["real/loop", "the target is inside the root"],
      ["self", "the target does not exist"],
    ]);
  });

  it("resolves a root that is a symbolic link", async () => {
    const root = plant({ "real/a.ts": "" });
    symlinkSync("real", join(root, "link"));
    expect(await lines(join(root, "link"))).toEqual(["a.ts"]);
  });

  it("rejects a home directory, its parents and the disk, unless anywhere is set", async () => {
    for (const root of ["/", homedir(), join(homedir(), "..")])
      await expect(entries(root)).rejects.toMatchObject({ code: "invalid_input" });
    const first = walk("/", { anywhere: true });
    expect((await first.next()).done).toBe(false);
    await first.return();
  });

  it("rejects a missing folder and a file", async () => {
    const root = plant({ "a.ts": "" });
    await expect(entries(join(root, "gone"))).rejects.toMatchObject({ code: "not_found" });
    await expect(entries(join(root, "a.ts"))).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("reports pipes and sockets, and does not wait for them", async () => {
    const root = plant({ "a.ts": "" });
    execFileSync("mkfifo", [join(root, "pipe")]);
    expect(await lines(root)).toEqual(["a.ts", "pipe: special"]);
  });

  it("reports an unreadable folder, and continues", async () => {
    const root = plant({ "a/x.ts": "", "b.ts": "", "locked/secret.ts": "" });
    chmodSync(root, 0o755);
    chmodSync(join(root, "locked"), 0o000);
    const restore = asOrdinaryUser();
    try {
      expect(await entries(root)).toContainEqual({ type: "failed", path: "locked/", reason: "unreadable", detail: "EACCES" });
      expect(await lines(root)).toEqual(["a/x.ts", "b.ts", "locked/: unreadable"]);
    } finally {
      restore();
      chmodSync(join(root, "locked"), 0o755);
    }
  });

  it("keeps unusual names unchanged, and reports names that are not UTF-8", async () => {
    const names = [
      "new\nline.ts",
      "tab\t.ts",
      "ünï cödé 😀.ts",
      "-rf",
      "a b",
      "#hash",
      "!bang",
      "[x].ts",
      "back\\slash.ts",
      `${"n".repeat(250)}.ts`,
      "...",
    ];
    const root = plant({ ...Object.fromEntries(names.map((name) => [name, ""])), ".gitignore": "\\[x\\].ts\n\\#hash\n" });
    mkdirSync(Buffer.concat([Buffer.from(`${root}/sub-`), Buffer.from([0xff])]));
    const expected = names.map((name) => (name === "[x].ts" || name === "#hash" ? `${name}: ignored` : name));
    expect((await lines(root)).sort()).toEqual([...expected, ".gitignore", "sub-\uFFFD: name"].sort());
    expect(statSync(join(root, names[0]!)).size).toBe(0);
  });

  it("walks until the path length limit, and reports where it stopped", async () => {
    const root = plant();
    const name = "d".repeat(200);
    const dig = `const fs = require("node:fs"); process.chdir(process.argv[1]); for (let i = 0; i < 25; i++) { fs.mkdirSync(process.argv[2]); process.chdir(process.argv[2]); }`;
    execFileSync(process.execPath, ["-e", dig, root, name]);
    const found = await lines(root);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/: unreadable$/);
    execFileSync("rm", ["-rf", root]);
  });

  it("continues when folders vanish during the walk", async () => {
    const root = plant({ "a/x.ts": "", "b/y.ts": "", "c.ts": "" });
    const found: string[] = [];
    for await (const entry of walk(root)) {
      found.push(`${entry.path}: ${entry.type}`);
      rmSync(join(root, "b"), { recursive: true, force: true });
    }
    expect(found).toEqual(["a/x.ts: file", "b/: failed", "c.ts: file"]);
  });

  it("stops when it is cancelled", async () => {
    const root = plant({ "a.ts": "", "b.ts": "" });
    const controller = new AbortController();
    const found: string[] = [];
    const stopped = (async () => {
      for await (const entry of walk(root, { signal: controller.signal })) {
        found.push(entry.path);
        controller.abort();
      }
    })();
    await expect(stopped).rejects.toMatchObject({ code: "cancelled" });
    expect(found).toEqual(["a.ts"]);
  });
});

/** Root may read everything; then the test runs as the user nobody for a while. */
function asOrdinaryUser(): () => void {
  if (process.geteuid?.() !== 0) return () => {};
  process.seteuid!(65_534);
  return () => process.seteuid!(0);
}
