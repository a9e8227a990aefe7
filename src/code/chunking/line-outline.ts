import type { Lines } from "./lines.ts";
import type { Block, Outline } from "./outline.ts";

/** Structure of a text without syntax: paragraphs, as blank lines separate them. */
export function lineOutline(lines: Lines): Outline {
  return { root: { startLine: 1, endLine: lines.count, open: true, children: paragraphs(lines, 1, lines.count) }, symbols: [] };
}

/** The runs of lines between blank ones. */
export function paragraphs(lines: Lines, from: number, to: number): Block[] {
  const blocks: Block[] = [];
  let open: Block | undefined;
  for (let line = from; line <= to; line++) {
    if (lines.isBlank(line)) open = undefined;
    else if (open) open.endLine = line;
    else {
      open = { startLine: line, endLine: line, children: [] };
      blocks.push(open);
    }
  }
  return blocks;
}
