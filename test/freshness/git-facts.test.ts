import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runGit } from "../../src/client/freshness/git-command.ts";
import { gitFacts } from "../../src/client/freshness/git-facts.ts";
import { gitHistory } from "../../src/client/freshness/git-history.ts";
import { sampleSource, type TestRepository, testRepository } from "./repository.ts";

describe("facts of git in the data folder", () => {
  let repository: TestRepository;
  let dataDir: string;
  let folder: string;
  let first: string;
  let side: string;
  let head: string;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-facts-"));
    folder = join(dataDir, "git");
    repository = testRepository();
    repository.write("src/a.js", sampleSource("A"));
    first = repository.commit();
    repository.git("checkout", "-q", "-b", "side");
    repository.write("src/side.js", sampleSource("S"));
    side = repository.commit();
    repository.git("checkout", "-q", "main");
    repository.git("mv", "src/a.js", "src/b.js");
    head = repository.commit();
  });
  afterEach(() => {
    repository.dispose();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Every answer, as a new process gets it. */
  const ask = async (tree = repository.root) => {
    const history = gitHistory(gitFacts(folder));
    return {
      includes: Object.fromEntries(await history.includes(tree, head, [first, side, "0123456789".repeat(4)])),
      patch: await history.containsPatch(tree, head, side),
      renames: await history.renames(tree, head, first),
    };
  };
  const expected = () => ({
    includes: { [first]: true, [side]: false },
    patch: false,
    renames: new Map([["src/a.js", "src/b.js"]]),
  });

  it("answers a second process without git", async () => {
    expect(await ask()).toEqual(expected());
    const [file] = readdirSync(folder);
    expect(statSync(join(folder, file!)).mode & 0o777).toBe(0o600);
    const { root } = repository;
    rmSync(join(root, ".git", "objects"), { recursive: true }); // git cannot answer any more
    expect(await runGit(root, ["cat-file", "-t", head])).toBeUndefined();
    expect(await ask()).toEqual(expected());
  });

  it("ignores and replaces a file that is damaged, foreign or a folder", async () => {
    await ask();
    const path = join(folder, readdirSync(folder)[0]!);
    const content = readFileSync(path, "utf8");
    const planted = content.replace("true", "false");
    for (const damaged of ["", "{}", content.slice(0, -20), planted, content.replaceAll("\n", "\r"), "\0".repeat(2_000_000)]) {
      writeFileSync(path, damaged);
      expect(await ask()).toEqual(expected());
      expect(readFileSync(path, "utf8").split("\n")[0]).toHaveLength(64);
    }
  });

  it("answers where the folder cannot be written", async () => {
    writeFileSync(folder, "a file");
    expect(await ask()).toEqual(expected());
    expect(await ask()).toEqual(expected());
  });

  it("keeps the facts of several writers and a bounded number of files", async () => {
    const one = gitFacts(folder);
    const other = gitFacts(folder);
    one.add(repository.root, head, new Map([["includes a", true]]));
    other.add(repository.root, head, new Map([["includes b", false]]));
    expect([...gitFacts(folder).about(repository.root, head)]).toEqual([
      ["includes a", true],
      ["includes b", false],
    ]);
    for (let number = 0; number < 100; number++)
      one.add(repository.root, String(number).padStart(40, "0"), new Map([["includes a", true]]));
    expect(readdirSync(folder).length).toBeLessThanOrEqual(64);
    one.add(repository.root, head, new Map(Array.from({ length: 5_000 }, (_, index) => [`includes ${index}`, true])));
    expect(gitFacts(folder).about(repository.root, head).size).toBeLessThanOrEqual(2_000);
  });

  it("asks again when a shallow clone has got its whole history", async () => {
    const clone = mkdtempSync(join(tmpdir(), "cairn-shallow-"));
    try {
      repository.git("clone", "-q", "--depth", "1", `file://${repository.root}`, clone);
      expect((await ask(clone)).includes).toEqual({});
      repository.git("-C", clone, "fetch", "-q", "--unshallow", "origin", "main");
      expect((await ask(clone)).includes).toEqual({ [first]: true });
    } finally {
      rmSync(clone, { recursive: true, force: true });
    }
  });

  it("answers for short ids and for many commits with one question", async () => {
    const history = gitHistory();
    const short = [first.slice(0, 10), side.slice(0, 10)];
    expect(await history.includes(repository.root, head, short)).toEqual(
      new Map([
        [short[0], true],
        [short[1], false],
      ]),
    );
  });

  it("stores the other answers although one of them is too large", () => {
    const renames = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`old/${index}-${"x".repeat(60)}`, `new/${index}`]));
    gitFacts(folder).add(
      repository.root,
      head,
      new Map<string, boolean | Record<string, string>>([
        ["large", renames],
        ["small", true],
      ]),
    );
    expect([...gitFacts(folder).about(repository.root, head)]).toEqual([["small", true]]);
  });
});
