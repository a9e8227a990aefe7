import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A git repository for a test. */
export interface TestRepository {
  readonly root: string;
  git(...args: readonly string[]): string;
  write(path: string, content: string): void;
  remove(path: string): void;
  /** Commits everything and returns the id of the commit. */
  commit(message?: string): string;
  dispose(): void;
}

export function testRepository(): TestRepository {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "cairn-fresh-")));
  const git = (...args: readonly string[]) => {
    const settings = ["user.name=Test", "user.email=test@example.com", "commit.gpgsign=false", "init.defaultBranch=main", "gc.auto=0"];
    const { status, stdout, stderr } = spawnSync("git", [...settings.flatMap((one) => ["-c", one]), ...args], {
      cwd: root,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  git("init", "-q", "-b", "main");
  const repository: TestRepository = {
    root,
    git,
    write(path, content) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content);
    },
    remove: (path) => rmSync(join(root, path)),
    commit(message = "change") {
      git("add", "-A");
      git("commit", "-q", "--allow-empty", "-m", message);
      return git("rev-parse", "HEAD");
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
  return repository;
}

/** A file with three functions, long enough for git to recognise a rename. */
export function sampleSource(seed: string): string {
  const body = (name: string) => `export function ${name}(input) {\n  const value = input + "${seed}";\n  return value.trim();\n}\n`;
  return ["first", "second", "third"].map((name) => body(`${name}${seed}`)).join("\n");
}
