import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkTree } from "../../src/client/freshness/check-tree.ts";
import { gitHistory } from "../../src/client/freshness/git-history.ts";
import { treeFiles } from "../../src/client/freshness/tree-files.ts";
import { sampleSource, testRepository } from "../freshness/repository.ts";

it("runs no program that a repository configures when it compares records", { timeout: 120_000 }, async () => {
  const repository = testRepository();
  const outside = mkdtempSync(join(tmpdir(), "cairn-planted-"));
  const mark = join(outside, "ran");
  const program = join(outside, "program.sh");
  writeFileSync(program, `#!/bin/sh\ntouch ${mark}\ncat\n`);
  chmodSync(program, 0o755);
  try {
    repository.write("src/a.js", sampleSource("A"));
    repository.write(".gitattributes", "*.js diff=planted filter=planted\n");
    const saved = repository.commit();
    repository.git("checkout", "-q", "-b", "other");
    repository.write("src/b.js", sampleSource("B"));
    const elsewhere = repository.commit();
    repository.git("checkout", "-q", "main");
    repository.git("mv", "src/a.js", "src/c.js");
    repository.commit();
    const settings = ["core.fsmonitor", "core.pager", "core.sshCommand", "diff.external", "diff.planted.command", "diff.planted.textconv"];
    for (const name of [...settings, "filter.planted.clean", "filter.planted.smudge", "credential.helper", "uploadpack.packObjectsHook"])
      repository.git("config", name, program);
    repository.git("config", "core.hooksPath", outside);
    repository.git("config", "extensions.partialClone", "origin");
    repository.git("config", "remote.origin.url", `ext::${program}`);
    repository.git("config", "remote.origin.promisor", "true");
    repository.git("config", "protocol.ext.allow", "always");

    const deps = { readFile: treeFiles(), history: gitHistory(), limitMs: 60_000 };
    const missing = "0123456789abcdef0123456789abcdef01234567";
    const records = [
      { anchors: [{ kind: "head", value: saved, branch: "main" } as const, { kind: "file", value: "src/a.js", hash: "0" } as const] },
      { anchors: [{ kind: "head", value: elsewhere, branch: "other" } as const] },
      { anchors: [{ kind: "head", value: missing, branch: "main" } as const, { kind: "file", value: "src/a.js", hash: "0" } as const] },
    ];
    expect((await checkTree(deps, repository.root, records)).map(({ state }) => state)).toEqual(["renamed", "other_branch", "unknown"]);
    expect(await deps.history.commits(repository.root, [saved.slice(0, 9), missing, "--all"])).toEqual([saved, undefined, undefined]);
    expect(existsSync(mark)).toBe(false);
    repository.git("diff", "--no-renames", saved, "HEAD"); // git as a user starts it does run them
    expect(existsSync(mark)).toBe(true);
  } finally {
    repository.dispose();
    rmSync(outside, { recursive: true, force: true });
  }
});
