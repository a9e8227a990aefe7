// npm run language            counts barred words and phrases per folder
// npm run language -- src/cli  lists them with file, line and replacement; "." lists all, and "-" reads standard input
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Pairs of a barred expression and its replacement. docs/glossary.md has the terms. */
const BARRED = [
  [/\btold\b|\btells\b|\btell of\b/i, "reported, reports, returns"],
  [/\/\*\* Says\b|; says\b|\bsays so\b|\band says (how|which|whether|when|where|why)\b/, "returns, reports, states"],
  [/\bgives? back\b|\bgives (how|what|those)\b|\/\*\* Gives\b/i, "returns"],
  [/\bwhoever\b/i, "the caller, a process that"],
  [/\banew\b/i, "again, new"],
  [/\b(go|goes|going|went|gone) on\b/i, "continue, resume"],
  [/\bso many\b/i, "N, the limit"],
  [/\bby (words|meaning)\b/i, "keyword, semantic"],
  [/\b(give|gives|gave|giving) way\b/i, "yield"],
  [/\b(come|comes|came) to rest\b|(?<!encrypt\w{0,5} )\bat rest\b/i, "idle"],
  [/\balike\b/i, "similar, both"],
  [/\blearnt\b/i, "knowledge, learned"],
  [
    /\b(function|const) (kept|given|meant|shown|refused|told)\b(\(| = (async )?\([^)]*\)(: \w+)? =>)|\b(const|let) (learnt|later|examining)\b/,
    "a noun for a value, a verb for a function",
  ],
  [/\bbeside the files\b|\blocal side\b/i, "client side"],
  [/(?<!code\.)\bdeepen/i, "re-embed"],
  [/\bhalf as \w+ again\b/i, "1.5 times as …"],
  [/\bwhat (is|was) there\b|\bwhat there is\b/i, "existing rows, the existing file"],
  [/\btid(y|ies|ied)\b/i, "compact, clean up"],
  [/\bpatien(ce|t|tly)\b/i, "probes, retry"],
  [/\bcan wait\b|\bcalls? that counts?\b/i, "background write, call in flight"],
  [/\bso that nobody\b/i, "so that no process, so that no caller"],
  [/\bthose that\b/i, "the noun: records that, files that"],
  [/\bhow far (it|they|he|she|we|one|along)\b/i, "status, progress"],
  [/\bto be had\b/i, "available"],
  [/\bin silence\b/i, "silently"],
  [/\bon the move\b|\bmoved? away\b/i, "migrating, migrated"],
  [/\bstands? still\b/i, "stalls, blocks"],
];

const INCLUDED = /\.(md|ts|mjs|sh|json|yaml)$|Dockerfile$|\.ci\/run$/;
/** Texts that this project did not write, data of benchmarks, and the files that hold the list. */
const EXCLUDED =
  /^(package-lock\.json|docs\/library\.md|scripts\/language\.mjs|test\/language\.test\.ts|test\/fixtures\/|training\/|bench\/(peers\/|code-recall\/.*json$)|test\/conformance\/.*\.json$)/;

/** Returns every barred expression in these files, or in the whole repository. */
function findBarred(paths) {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...(paths.length > 0 ? paths : ["."])];
  const { stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  const files = stdout.split("\n").filter((file) => INCLUDED.test(file) && !EXCLUDED.test(file) && existsSync(join(root, file)));
  return files.flatMap((file) => barredLines(file, readFileSync(join(root, file), "utf8")));
}

function barredLines(file, text) {
  return text.split("\n").flatMap((content, index) =>
    BARRED.flatMap(([expression, instead]) => {
      const found = expression.exec(content)?.[0];
      return found === undefined ? [] : [{ file, line: index + 1, found, instead }];
    }),
  );
}

function countByFolder(all) {
  const counts = new Map();
  for (const { file } of all) {
    const folder = file.split("/").slice(0, 2).join("/");
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}

const paths = process.argv.slice(2);
const all = paths[0] === "-" ? barredLines("stdin", readFileSync(0, "utf8")) : findBarred(paths);
if (paths.length > 0) for (const { file, line, found, instead } of all) console.log(`${file}:${line}: «${found}» → ${instead}`);
else for (const [folder, count] of countByFolder(all)) console.log(`${String(count).padStart(5)}  ${folder}`);
console.log(`${all.length} barred words and phrases`);
