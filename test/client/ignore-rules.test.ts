import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { entries, tree } from "./tree.ts";

// ASCII only: in git `?` and `[^a]` stand for a byte, here for a character.
const names = fc.constantFrom("a", "b", "c", "ab", "a.ts", "b.log", ".x", "build", "a b", "[a]", "!a", "#a", "A", "a\\b", "a*");
const paths = fc.array(names, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
const glob = fc.oneof(
  fc.constantFrom("a", "b", "ab", "build", ".x", "A", "a b", "a\\ b", "\\[a\\]", "\\!a", "\\#a", "\\*", "{a,b}", "a+", "(a)"),
  fc.constantFrom("*", "**", "?", "a*", "*.ts", "*.log", "[ab]", "[!a]", "[a-b]*"),
);
const pattern = fc
  .tuple(
    fc.constantFrom("", "", "", "!"),
    fc.constantFrom("", "", "/", "**/"),
    fc.array(glob, { minLength: 1, maxLength: 3 }),
    fc.constantFrom("", "", "/", "/**", "/*"),
  )
  .map(([negation, start, parts, end]) => negation + start + parts.join("/") + end);
const oddLine = fc.constantFrom("", "# comment", "  ", "/", "!", "a  ", "a\r");
const ruleLines = fc.array(fc.oneof({ weight: 8, arbitrary: pattern }, { weight: 1, arbitrary: oddLine }), { maxLength: 5 });
const ruleFiles = fc.array(fc.tuple(fc.oneof(fc.constant(""), paths), ruleLines), { maxLength: 4 });

describe("the ignore rules", () => {
  const { root, remove } = tree();
  execFileSync("git", ["init", "-q", root]);
  afterAll(remove);

  it("exclude exactly what git excludes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(paths, { minLength: 1, maxLength: 15 }),
        ruleFiles,
        ruleLines,
        async (candidates, rules, excludes) => {
          for (const entry of readdirSync(root)) if (entry !== ".git") rmSync(join(root, entry), { recursive: true });
          write(".git/info/exclude", excludes.join("\n"));
          // A path cannot be a file and a folder at once.
          const files = candidates.filter((path) => !candidates.some((other) => other.startsWith(`${path}/`)));
          for (const path of files) write(path, "");
          for (const [folder, lines] of rules)
            if (folder === "" || files.some((path) => path.startsWith(`${folder}/`))) write(join(folder, ".gitignore"), lines.join("\n"));

          const walked = (await entries(root)).filter(({ type }) => type === "file").map(({ path }) => path);
          expect(walked.sort()).toEqual(listedByGit());
        },
      ),
      { numRuns: 200 },
    );
  });

  function write(path: string, content: string): void {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }

  function listedByGit(): string[] {
    const args = ["-C", root, "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"];
    return execFileSync("git", args, { encoding: "utf8" }).split("\0").filter(Boolean).sort();
  }
});
