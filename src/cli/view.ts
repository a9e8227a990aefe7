import type { z } from "zod";
import { freshnessText } from "../freshness/judge.ts";
import type { Anchor, Freshness } from "../model/anchor.ts";
import type { Operation } from "../operations/operation.ts";
import { Damaged, damagedNote } from "../operations/schemas.ts";
import { WeightsField, weightsNote } from "../operations/search-schemas.ts";
import { commandNames } from "./command-words.ts";
import type { Host } from "./host.ts";
import { fitLines } from "./terminal/fit-lines.ts";
import { relativeTime, shortRelativeTime } from "./terminal/relative-time.ts";
import { escapeControls, type Style, styleFor } from "./terminal/style.ts";
import { type Column, table } from "./terminal/table.ts";
import { pad, wrapText } from "./terminal/width.ts";

type Item = Readonly<Record<string, unknown>>;

/** Formats the output of an operation for the terminal. */
export function viewText(operation: Operation, input: Item, output: Item, host: Host): string {
  const style = styleFor(host.stdout, host.env);
  const width = host.stdout.isTTY ? (host.stdout.columns ?? 80) : undefined;
  const view = operation.cli?.view;
  const { text, wholeLines } = operation.cli ?? {};
  if (text) {
    const answer = text(escapeAll(output) as z.output<z.ZodObject>, style);
    return width === undefined || wholeLines ? answer : fitLines(answer, width);
  }
  if (!view) return escapeControls(operation.render(output as z.output<z.ZodObject>));
  if ("record" in view) return recordText(view.record, output, { host, style, width });
  const items = (output[view.table] ?? []) as readonly Item[];
  if (items.length === 0) return [`No ${view.table.replaceAll("_", " ")}.`, notes(output, style)].filter(Boolean).join("\n");
  // A column of records without marks says nothing, nor does an optional one without values.
  const isEmpty = (item: Item, field: string) => cell(field, at(item, field), host) === "";
  const mayBeEmpty = (field: string) => isMark(field) || view.optional?.includes(field);
  const fields = view.columns.filter((field) => !mayBeEmpty(field) || items.some((item) => !isEmpty(item, field)));
  const main = fields.find((field) => MAIN_FIELDS.includes(lastPart(field)));
  const optional = view.optional ?? [];
  const columns = fields.map((field): Column => {
    const right = items.every((item) => typeof at(item, field) === "number");
    const drop = optional.includes(field) ? optional.length - optional.indexOf(field) : undefined;
    return {
      title: title(field),
      flexible: !isId(field) && !isTime(field) && !right && !isRanks(field),
      right,
      main: field === main,
      drop,
    };
  });
  const shorten =
    width === undefined ? (id: string) => id : shortener(fields.filter(isId).flatMap((field) => items.map((item) => at(item, field))));
  const rows = items.map((item) =>
    fields.map((field) => {
      const value = at(item, field);
      return isId(field) && typeof value === "string" ? shorten(oneLine(value)) : cell(field, value, host);
    }),
  );
  return [table(columns, rows, width, style), footer(items.length, input, output, style), notes(output, style)].filter(Boolean).join("\n");
}

/** Columns that get the space of a table, if it has one of them. */
const MAIN_FIELDS = ["summary", "question", "reason", "label", "location", "project_path"];
const UUID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;
const SHORT_ID_CHARS = 8;

/** Returns a function that shortens UUIDs to a prefix that is unique in the table. Commands accept the prefix. */
function shortener(ids: readonly unknown[]): (id: string) => string {
  const uuids = [...new Set(ids)].filter((id): id is string => typeof id === "string" && UUID.test(id));
  let length = SHORT_ID_CHARS;
  while (length < 36 && new Set(uuids.map((id) => id.slice(0, length))).size < uuids.length) length++;
  return (id) => (UUID.test(id) ? id.slice(0, length) : id);
}

/** Escapes control characters in every text of a value, before colours are added. */
function escapeAll(value: unknown): unknown {
  if (typeof value === "string") return escapeControls(value);
  if (Array.isArray(value)) return value.map(escapeAll);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, escapeAll(inner)]));
}

/** Returns the value of a field; `checkpoint.summary` is a nested field. */
function at(item: Item, field: string): unknown {
  return field.split(".").reduce<unknown>((value, name) => (value as Item | undefined)?.[name], item);
}

interface Place {
  readonly host: Host;
  readonly style: Style;
  readonly width: number | undefined;
}

function recordText(fields: readonly string[], output: Item, { host, style, width }: Place): string {
  const shown = fields.filter(
    (field) => !isEmpty(output[field]) && !(field === "outdated" && output[field] === 0) && !isUnmarked(field, output),
  );
  const margin = Math.max(0, ...shown.map((field) => title(field).length)) + 2;
  return shown
    .flatMap((field) => {
      const lines = longText(field, output[field], host).flatMap((line) => (width ? wrapText(line, Math.max(20, width - margin)) : [line]));
      return lines.map((line, index) => `${style.dim(pad(index === 0 ? title(field) : "", margin))}${line}`.trimEnd());
    })
    .join("\n");
}

function longText(field: string, value: unknown, host: Host): string[] {
  if (isTime(field) && typeof value === "string") return [`${value} (${relativeTime(value, host.now())})`];
  if (field === "freshness") return [oneLine(freshnessText(value as Freshness))];
  if (field === "anchors") return (value as readonly Anchor[]).map(anchorLine);
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return Object.entries(value).map(([key, inner]) => `${oneLine(key)} = ${scalar(inner)}`);
  return typeof value === "string" ? escapeControls(value).split("\n") : [cell(field, value, host)];
}

/** Formats an anchor with the beginning of its hash. */
function anchorLine({ kind, value, path, branch, hash }: Anchor): string {
  const place = [...(path === undefined ? [] : [`in ${path}`]), ...(branch === undefined ? [] : [`on ${branch}`])];
  return oneLine([kind, value, ...place, ...(hash === undefined ? [] : [hash.slice(0, 8)])].join(" "));
}

function cell(field: string, value: unknown, host: Host): string {
  if (isEmpty(value)) return "";
  if (isTime(field) && typeof value === "string") return shortRelativeTime(value, host.now());
  if (isRanks(field)) return reasons(value as Found);
  if (field === "outdated" && value === 0) return "";
  if (isMark(field)) return (value as Freshness).state === "unknown" ? "" : (value as Freshness).state;
  if (field === "score" && typeof value === "number") return value.toFixed(2);
  return Array.isArray(value) ? value.map(scalar).join(", ") : scalar(value);
}

/** A record that names no code has nothing to compare. */
const isUnmarked = (field: string, output: Item) => {
  if (!isMark(field)) return false;
  const { state, reason } = output[field] as Freshness;
  return state === "unknown" && reason === undefined;
};

const isMark = (field: string) => lastPart(field) === "freshness";

/** The rank of a hit in each ranking that found it. */
type Found = Readonly<Record<string, { readonly rank: number } | undefined>>;

/** Formats why a search found a record: `keyword #1, semantic #3`. */
function reasons(found: Found): string {
  return Object.entries(found)
    .flatMap(([ranking, place]) => (place ? [{ ranking, rank: place.rank }] : []))
    .sort((a, b) => a.rank - b.rank || (a.ranking < b.ranking ? -1 : 1))
    .map(({ ranking, rank }) => `${ranking} #${rank}`)
    .join(", ");
}

function scalar(value: unknown): string {
  if (typeof value === "number" && !Number.isInteger(value)) return value.toFixed(2);
  return oneLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

const lastPart = (field: string) => field.slice(field.lastIndexOf(".") + 1);
const oneLine = (text: string) => escapeControls(text).replace(/\s+/g, " ").trim();
const title = (field: string) => (isRanks(field) ? "FOUND BY" : lastPart(field).replace(/_at$/, "").replaceAll("_", " ").toUpperCase());
const isTime = (field: string) => field.endsWith("_at") || field === "timestamp";
/** The ranks of a hit say why it was found. */
const isRanks = (field: string) => lastPart(field) === "found";
const isId = (field: string) => lastPart(field) === "id" || field.endsWith("_id");
const isEmpty = (value: unknown) =>
  value === undefined || value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);

/** Formats how many records follow, and the flag that shows them. */
function footer(shown: number, input: Item, output: Item, style: Style): string {
  const { total, next_cursor: next, next_before: before } = output;
  const offset = typeof input.offset === "number" ? input.offset : 0;
  // A total says nothing about the records after a cursor.
  const more = typeof total === "number" && input.cursor === undefined ? total - offset - shown : 0;
  if (more > 0) return style.dim(`${more} more: --limit ${shown + more}`);
  return next !== undefined || before !== undefined ? style.dim(`More: --limit ${shown * 2}`) : "";
}

/** Formats the weights of a search, why an answer is degraded, which records are damaged, and what was left out. */
function notes({ weights, damaged, degraded, total, note }: Item, style: Style): string {
  return [
    ...(weights === undefined ? [] : weightsNote(WeightsField.safeParse(weights).data)),
    ...(damaged === undefined ? [] : damagedNote(Damaged.safeParse(damaged).data)).map(escapeControls),
    ...(Array.isArray(degraded) ? degraded.map((part) => `Note: ${scalar(part)}.`) : []),
    ...(typeof note === "string" && total === undefined ? [commandNames(note)] : []),
  ]
    .map((line) => style.dim(line))
    .join("\n");
}
