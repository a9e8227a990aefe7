import type { GraphShape } from "../model/graph-shape.ts";
import { END, START } from "./definition.ts";

/** Returns the shape of a graph as Mermaid text, for documents and terminals that draw it. */
export function shapeMermaid({ nodes, edges, entry }: GraphShape): string {
  const ids = new Map<string, string>([...nodes.map(({ name }) => name), START, END].map((name, index) => [name, `n${index}`]));
  const id = (name: string) => ids.get(name)!;
  const lines = ["flowchart TD", `  ${id(START)}((start))`];
  for (const { name, type } of nodes) {
    const label = quoteLabel(name);
    const shape = type === "fork" ? `{{${label}}}` : type === "graph" ? `[[${label}]]` : `[${label}]`;
    lines.push(`  ${id(name)}${shape}`);
  }
  lines.push(`  ${id(END)}((end))`, `  ${id(START)} --> ${id(entry)}`);
  for (const { from, to, kind, label } of edges) {
    // A fork's own edge to its join is drawn by the branches that come together there.
    if (from === START || kind === "join") continue;
    if (kind === "fork") lines.push(`  ${id(from)} ==>|${quoteLabel(label ?? "")}| ${id(to)}`);
    else lines.push(`  ${id(from)} ${kind === "branch" ? "-.->" : "-->"} ${id(to)}`);
  }
  return lines.join("\n");
}

/** Mermaid reads entities inside quotes, and nothing else that could break out of them. */
function quoteLabel(text: string): string {
  return `"${text.replace(/[&"<>#]/g, (char) => `#${char.charCodeAt(0)};`).replace(/\s+/g, " ")}"`;
}
