import type { SymbolEntry } from "../../model/code-chunk.ts";
import { paragraphs } from "./line-outline.ts";
import type { Lines } from "./lines.ts";
import type { Block, Outline } from "./outline.ts";

/** Sections of a Markdown file, nested by heading level. Headings are all the structure search needs, so no parser runs. */
export function markdownOutline(lines: Lines): Outline {
  const sections: { readonly heading: Heading; readonly block: Block }[] = [];
  const root: Block = { startLine: 1, endLine: lines.count, open: true, children: [] };
  const path: { block: Block; level: number }[] = [{ block: root, level: 0 }];
  let textFrom = 1;

  const closeText = (to: number): void => {
    path[path.length - 1]!.block.children.push(...paragraphs(lines, textFrom, to));
  };

  for (const heading of headings(lines)) {
    closeText(heading.line - 1);
    while (path.length > 1 && path[path.length - 1]!.level >= heading.level) path.pop()!.block.endLine = heading.line - 1;
    const parents = path.slice(1).map(({ block }) => block.definition!.name);
    const block: Block = {
      startLine: heading.line,
      endLine: lines.count,
      definition: { kind: "section", name: heading.title, parents },
      children: [],
    };
    sections.push({ heading, block });
    path[path.length - 1]!.block.children.push(block);
    path.push({ block, level: heading.level });
    textFrom = heading.line;
  }
  closeText(lines.count);
  return { root, symbols: sections.map(toSymbol) };
}

function toSymbol({
  heading: { line, column },
  block: { definition, endLine },
}: {
  readonly heading: Heading;
  readonly block: Block;
}): SymbolEntry {
  return { role: "definition", name: definition!.name, kind: "section", line, column, endLine, parents: definition!.parents };
}

interface Heading {
  readonly line: number;
  readonly level: number;
  readonly title: string;
  readonly column: number;
}

function* headings(lines: Lines): Generator<Heading> {
  let fence: string | undefined;
  let line = 1 + frontMatterLines(lines);
  let previous = "";
  for (; line <= lines.count; line++) {
    const text = lines.slice(line, line).trimEnd();
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(text)?.[1];
    if (fence) {
      // A fence is closed by at least as many of the same sign, and nothing else on the line.
      if (mark?.startsWith(fence) && text.trim() === mark) fence = undefined;
      previous = "";
      continue;
    }
    if (mark) {
      fence = mark;
      previous = "";
      continue;
    }
    const atx = /^( {0,3}(#{1,6})(?:[ \t]+|$))(.*)$/s.exec(text);
    const underline = /^ {0,3}(=+|-+)$/.exec(text)?.[1];
    if (atx) {
      const rest = atx[3]!.replace(/(?:^|(?<=[ \t]))#+$/, "");
      const title = rest.trim();
      if (title) yield { line, level: atx[2]!.length, title, column: atx[1]!.length + rest.search(/\S/) + 1 };
      previous = "";
    } else if (underline && previous) {
      yield { line: line - 1, level: underline[0] === "=" ? 1 : 2, title: previous.trim(), column: previous.search(/\S/) + 1 };
      previous = "";
    } else {
      // Only a line of plain words can be underlined into a heading: not a list, a quote, a table or indented code.
      previous = /^(?: {4}|\t| {0,3}(?:[-*+>|]|\d+[.)]))/.test(text) ? "" : text;
    }
  }
}

/** YAML between `---` lines at the very top describes the file; its closing line underlines nothing. */
function frontMatterLines(lines: Lines): number {
  if (lines.count === 0 || lines.slice(1, 1).trimEnd() !== "---") return 0;
  for (let line = 2; line <= Math.min(lines.count, 200); line++) if (lines.slice(line, line).trimEnd() === "---") return line;
  return 0;
}
