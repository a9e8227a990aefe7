// Searches without a pause and looks at every answer: what is always there must be in it once, and whole. Reports what it saw when its
// stdin ends. Runs from dist/.
import { writeSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { open } from "../../dist/index.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";
import { ALWAYS_THERE, MARKER } from "./changing-tree.mjs";

const { projectPath, ...where } = JSON.parse(process.argv[2]);
const cairn = await open({ ...where, embedder: [hashEmbedder({ model: "test", dimension: 64 })] });
const MODES = ["hybrid", "keyword", "semantic"];
const problems = [];
let searches = 0;
let ended = false;
process.stdin.on("end", () => {
  ended = true;
});
process.stdin.resume();
for (; !ended && problems.length < 5; searches++) {
  const mode = MODES[searches % MODES.length];
  const { hits } = await cairn.code.search({ projectPath, query: "anchor version part", mode, topK: 200 });
  const problem = wrongWith(hits);
  if (problem) problems.push(`search ${searches}, ${mode}: ${problem}`);
  if (searches === 0) writeSync(1, "ready\n");
  await nextTurn();
}
writeSync(1, `${JSON.stringify({ searches, problems })}\n`);
await cairn.close();

function wrongWith(hits) {
  const seen = new Map(ALWAYS_THERE.map((name) => [name, { paths: new Set(), versions: new Set(), parts: [], of: 0 }]));
  for (const { path, text } of hits) {
    const [, name, version, part, of] = MARKER.exec(text) ?? [];
    const file = seen.get(name);
    if (!file) continue;
    file.paths.add(path);
    file.versions.add(version);
    file.parts.push(Number(part));
    file.of = Number(of);
  }
  for (const [name, { paths, versions, parts, of }] of seen) {
    if (paths.size !== 1) return `${name} is at ${paths.size === 0 ? "no path" : [...paths].join(" and ")}`;
    if (versions.size !== 1) return `${name} has versions ${[...versions].join(" and ")} at once`;
    if (parts.sort().join() !== Array.from({ length: of }, (_, part) => part + 1).join())
      return `${name} has the parts ${parts.join()} of ${of}`;
  }
}
