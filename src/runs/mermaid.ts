import { END, type GraphDefinition, START } from "./definition.ts";

/** The graph as Mermaid text, for documents and terminals that draw it. */
export function toMermaid(graph: GraphDefinition): string {
  const ids = new Map<string, string>([...graph.nodes.keys(), START, END].map((name, index) => [name, `n${index}`]));
  const id = (name: string) => ids.get(name)!;
  const lines = ["flowchart TD", `  ${id(START)}((start))`];
  for (const node of graph.nodes.values()) {
    const label = quoteLabel(node.name);
    const shape = node.type === "fork" ? `{{${label}}}` : node.type === "graph" ? `[[${label}]]` : `[${label}]`;
    lines.push(`  ${id(node.name)}${shape}`);
  }
  lines.push(`  ${id(END)}((end))`, `  ${id(START)} --> ${id(graph.entry)}`);
  for (const [from, exit] of graph.exits) {
    const node = graph.nodes.get(from)!;
    if (node.type === "fork") for (const [name, start] of node.branches) lines.push(`  ${id(from)} ==>|${quoteLabel(name)}| ${id(start)}`);
    // A fork's own edge to its join is drawn by the branches that come together there.
    else if ("to" in exit) lines.push(`  ${id(from)} --> ${id(exit.to)}`);
    else for (const target of exit.targets) lines.push(`  ${id(from)} -.-> ${id(target)}`);
  }
  return lines.join("\n");
}

/** Mermaid reads entities inside quotes, and nothing else that could break out of them. */
function quoteLabel(text: string): string {
  return `"${text.replace(/[&"<>#]/g, (char) => `#${char.charCodeAt(0)};`).replace(/\s+/g, " ")}"`;
}
