#!/usr/bin/env node
// Runs the tour and draws the steps of it that the README shows as docs/tour.svg: npm run picture
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const STEPS = ["Find it in other words", "Kill a process in the middle of a save", "Kill a process in the middle of a run"];
const COLUMNS = 88;
const LINE_HEIGHT = 19;
const CHARACTER_WIDTH = 7.83;

const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "dist/bundle/main.cjs"), "tour", "--once"], {
  encoding: "utf8",
});
if (status !== 0) throw new Error(`The tour failed.\n${stderr}`);
const lines = ["$ npm install && npm start", "", ...STEPS.flatMap((title) => [...stepLines(stdout, title), ""])].slice(0, -1);
writeFileSync(join(root, "docs/tour.svg"), draw(lines));

/** Returns the output of one step: its title, its reason and what it printed. */
function stepLines(text, title) {
  const step = text.split(/\n(?=\d+\/\d+ )/).find((part) => part.split("\n", 1)[0].endsWith(title));
  if (step === undefined) throw new Error(`The tour has no step ${title}.`);
  const output = step.trimEnd().split("\n");
  // One record is enough in a picture.
  const end = output.findIndex((line) => line.startsWith("  $ cairn checkpoint get"));
  return (end < 0 ? output : output.slice(0, end + 2)).flatMap((line, index) => (line === "" && index < 3 ? [] : wrap(line)));
}

function wrap(line) {
  const words = line.split(/(?<=\S)(?= )/);
  const wrapped = [""];
  for (const word of words) {
    if ((wrapped.at(-1) + word).length > COLUMNS) wrapped.push(word.trimStart());
    else wrapped[wrapped.length - 1] += word;
  }
  return wrapped;
}

function draw(all) {
  const width = Math.ceil(COLUMNS * CHARACTER_WIDTH) + 48;
  const height = all.length * LINE_HEIGHT + 64;
  const rows = all.map((line, index) => {
    const style = line === "" ? "" : styleOf(line);
    return `<text x="24" y="${56 + index * LINE_HEIGHT}" xml:space="preserve"${style}>${escapeText(line)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>Cairn in a terminal: a search in other words, and a process that is killed in the middle of a save and of a run</title>
<rect width="100%" height="100%" rx="10" fill="#14181f"/>
<circle cx="24" cy="22" r="6" fill="#ff5f57"/><circle cx="44" cy="22" r="6" fill="#febc2e"/><circle cx="64" cy="22" r="6" fill="#28c840"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#d7dde6">
${rows.filter((row) => !row.endsWith("></text>")).join("\n")}
</g>
</svg>
`;
}

/** Reasons start in the first column; what a step prints is indented. */
function styleOf(line) {
  if (/^\s*\$ /.test(line)) return ' fill="#7ee787"';
  if (/^\d+\/\d+ /.test(line)) return ' fill="#ffffff" font-weight="bold"';
  if (/^\S/.test(line)) return ' fill="#8b949e"';
  return /killed|good match/.test(line) ? ' fill="#ffd479"' : "";
}

function escapeText(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
