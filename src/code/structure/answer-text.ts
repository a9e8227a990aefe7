import type { z } from "zod";
import type { TextStyle } from "../../operations/operation.ts";
import type { CalleesOutput, CallersOutput, GrepOutput, ImpactOutput } from "./wire-schemas.ts";

/** Renders the answers of the structure operations as text. */

const PLAIN: TextStyle = { bold: (text) => text, dim: (text) => text };
/** Uses shown of one definition. */
const SHOWN_USES = 3;

interface Node {
  readonly path: string;
  readonly line: number;
  readonly name?: string | undefined;
  readonly kind?: string | undefined;
  readonly parents: readonly string[];
  readonly stale?: boolean | undefined;
}

export function callersText({ callers, note }: z.output<typeof CallersOutput>, style: TextStyle = PLAIN): string {
  return [...callers.flatMap((caller) => [nodeText(caller, style), ...usesText(caller.uses, style)]), note].join("\n");
}

export function calleesText({ callees, note }: z.output<typeof CalleesOutput>, style: TextStyle = PLAIN): string {
  const lines = callees.flatMap(({ name, definitions, defined_times, uses }) => {
    const more = defined_times > definitions.length ? style.dim(` and ${defined_times - definitions.length} more definitions`) : "";
    const places = definitions.map((one) => nodeText(one, style)).join(", ");
    return [`${name}  ${style.dim("→")} ${places}${more}`, ...usesText(uses, style)];
  });
  return [...lines, note].join("\n");
}

export function impactText({ affected, not_followed, note }: z.output<typeof ImpactOutput>, style: TextStyle = PLAIN): string {
  return [
    ...affected.map(
      (one) => `${"  ".repeat(one.depth - 1)}${nodeText(one, style)}  ${style.dim(`uses ${one.via}${one.test ? ", test" : ""}`)}`,
    ),
    ...(not_followed.length > 0 ? [`Not followed, because many definitions have the name: ${not_followed.join(", ")}.`] : []),
    note,
  ].join("\n");
}

export function grepText({ matches, note, searched_files }: z.output<typeof GrepOutput>, style: TextStyle = PLAIN): string {
  const lines = matches.map(({ path, line, column, text, text_start_line, stale }) => {
    const place = `${style.bold(`${path}:${line}:${column}`)}${stale ? style.dim(" (stale)") : ""}`;
    if (!text.includes("\n")) return `${place}  ${text.trim()}`;
    const width = String(text_start_line + text.split("\n").length).length;
    const numbered = text
      .split("\n")
      .map((one, index) => `${style.dim(String(text_start_line + index).padStart(width))}  ${one}`.trimEnd());
    return [place, ...numbered].join("\n");
  });
  const none = matches.length === 0 && !note ? [`No matching lines. ${searched_files} files may have one and were searched.`] : [];
  return [...lines, ...none, ...(note ? [note] : [])].join("\n");
}

function nodeText({ path, line, name, kind, parents, stale }: Node, style: TextStyle): string {
  const facts = [kind ?? "", stale ? "stale" : ""].filter(Boolean).join(", ");
  const symbol = name === undefined ? "top level" : [...parents, name].join(" › ");
  return `${style.bold(`${path}:${line}`)}  ${symbol}${facts && `  ${style.dim(`(${facts})`)}`}`;
}

function usesText(uses: readonly { readonly line: number; readonly text: string }[], style: TextStyle): string[] {
  const left = uses.length - SHOWN_USES;
  return [
    ...uses.slice(0, SHOWN_USES).map(({ line, text }) => `    ${style.dim(String(line))}  ${text.trim().slice(0, 160)}`),
    ...(left > 0 ? [`    ${style.dim(`… ${left} more ${left === 1 ? "use" : "uses"}`)}`] : []),
  ];
}
