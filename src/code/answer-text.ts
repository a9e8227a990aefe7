import type { z } from "zod";
import type { TextStyle } from "../operations/operation.ts";
import { weightsNote } from "../operations/search-schemas.ts";
import type { ContextOutput, SearchOutput, UsagesOutput } from "./wire-schemas.ts";

/** Renders code answers as text: complete for an agent, a few lines per hit for a terminal. */

type Search = z.output<typeof SearchOutput>;
type Hit = Search["results"][number];
type Site = z.output<typeof UsagesOutput>["references"][number];

const PLAIN: TextStyle = { bold: (text) => text, dim: (text) => text };

export function searchText(
  { results, note, weights, degraded }: Search,
  style: TextStyle = PLAIN,
  linesPerHit = Number.MAX_SAFE_INTEGER,
): string {
  return [
    ...results.map((hit) => hitText(hit, style, linesPerHit)),
    ...(results.length === 0 && !note ? ["No results. Try other keywords or fewer filters."] : []),
    ...(note ? [note] : []),
    ...weightsNote(weights),
    ...degraded.map((part) => `Note: ${part}.`),
  ].join("\n\n");
}

function hitText(hit: Hit, style: TextStyle, linesPerHit: number): string {
  const place = `${hit.path}:${hit.start_line}-${hit.end_line}`;
  const symbol = hit.symbol === undefined ? "" : `  ${[...hit.parents, hit.symbol].join(" › ")}`;
  const facts = [hit.kind, hit.language, whyText(hit), hit.stale ? "stale" : ""].filter(Boolean).join(", ");
  return `${style.bold(place)}${symbol}  ${style.dim(`(${facts})`)}\n${numberLines(hit.text, hit.text_start_line, style, linesPerHit, hit.symbol)}`;
}

function whyText({ found }: Hit): string {
  const { definition, keyword, semantic } = found;
  const reasons = [definition ? "definition" : "", keyword ? `keyword #${keyword}` : "", semantic ? `semantic #${semantic}` : ""];
  return reasons.filter(Boolean).join(", ");
}

/** Numbers the lines. Of more than `most`, it shows those from the line before the symbol's name, which may hold its comment. */
function numberLines(text: string, startLine: number, style: TextStyle, most: number, symbol?: string): string {
  const lines = text.split("\n").map((line, index) => ({ line, number: startLine + index }));
  const named = symbol === undefined ? -1 : lines.findIndex(({ line }) => line.includes(symbol));
  const first = lines.length <= most ? 0 : Math.max(0, named - 1);
  const visible = lines.slice(first, first + most);
  const width = String(lines.at(-1)!.number).length;
  const left = lines.at(-1)!.number - (visible.at(-1)?.number ?? 0);
  return [
    ...visible.map(({ line, number }) => `${style.dim(String(number).padStart(width))}  ${line}`.trimEnd()),
    ...(left > 0 ? [style.dim(`${" ".repeat(width)}  … ${left} more ${left === 1 ? "line" : "lines"}`)] : []),
  ].join("\n");
}

export function usagesText(
  { definitions, references, total_references, note }: z.output<typeof UsagesOutput>,
  style: TextStyle = PLAIN,
): string {
  const site = ({ path, line, column, text, stale }: Site, ...about: string[]) => {
    const facts = [about.filter(Boolean).join(" in "), stale ? "stale" : ""].filter(Boolean).join(", ");
    return `  ${style.bold(`${path}:${line}:${column}`)}  ${text.trim()}${facts && `  ${style.dim(`(${facts})`)}`}`;
  };
  return [
    ...(definitions.length > 0 ? ["Definitions:"] : []),
    ...definitions.map((one) => site(one, one.kind, one.parents.join(" › "))),
    ...(references.length > 0 ? [`${total_references} ${total_references === 1 ? "reference" : "references"}:`] : []),
    ...references.map((one) => site(one)),
    ...(note ? [note] : []),
  ].join("\n");
}

export function contextText({ contexts, note }: z.output<typeof ContextOutput>, style: TextStyle = PLAIN): string {
  return [
    ...contexts.map(({ path, start_line, end_line, text, language, stale }) =>
      [
        `${style.bold(`${path}:${start_line}-${end_line}`)}  ${style.dim(`(${language}${stale ? ", stale" : ""})`)}`,
        numberLines(text, start_line, style, Number.MAX_SAFE_INTEGER),
      ].join("\n"),
    ),
    ...(note ? [note] : []),
  ].join("\n\n");
}

/** Returns search hits for agents: where the code is, and the code. */
export function compactSearch({ results, model: _, ...rest }: Search) {
  return {
    results: results.map(({ path, text_start_line, text, kind, symbol, parents, stale }) => ({
      path,
      lines: linesOf(text, text_start_line),
      symbol: symbol === undefined ? undefined : [...parents, symbol].join("."),
      kind,
      ...(stale && { stale }),
      text,
    })),
    ...rest,
  };
}

/** Returns usages for agents as `path:line:column  text`, like a search in a terminal. */
export function compactUsages({ definitions, references, ...rest }: z.output<typeof UsagesOutput>) {
  const site = ({ path, line, column, text, stale }: Site) => `${path}:${line}:${column}  ${text.trim()}${stale ? "  (stale)" : ""}`;
  return {
    definitions: definitions.map((one) => `${site(one)}  (${[one.kind, ...one.parents.slice(-1)].join(" in ")})`),
    references: references.map(site),
    ...rest,
  };
}

/** Returns contexts for agents. */
export function compactContexts({ contexts, ...rest }: z.output<typeof ContextOutput>) {
  return {
    contexts: contexts.map(({ path, start_line, text, stale }) => ({
      path,
      lines: linesOf(text, start_line),
      ...(stale && { stale }),
      text,
    })),
    ...rest,
  };
}

function linesOf(text: string, startLine: number): string {
  return `${startLine}-${startLine + text.split("\n").length - 1}`;
}
