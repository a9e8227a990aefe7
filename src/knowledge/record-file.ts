import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { parseJson } from "../text/untrusted.ts";
import { parseCsv } from "./csv.ts";

export type RecordFormat = "json" | "jsonl" | "csv";

/** One record of a file, and its position for messages. */
export interface FileRecord {
  readonly where: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Parses a JSON array, JSON Lines or CSV with a header. Without a format, the first character decides. */
export function parseRecordFile(content: string, format?: RecordFormat): FileRecord[] {
  const text = content.replace(/^\ufeff/, "");
  const start = text.trimStart()[0];
  const kind = format ?? (start === "[" ? "json" : start === "{" ? "jsonl" : "csv");
  return { json: jsonRecords, jsonl: jsonLines, csv: csvRecords }[kind](text);
}

function jsonRecords(text: string): FileRecord[] {
  const data = jsonOf(text, "the file");
  if (!Array.isArray(data)) throw invalid("the file", "is not a JSON array of records");
  assertCount(data.length);
  return data.map((fields, index) => ({ where: `row ${index + 1}`, fields: object(fields, `row ${index + 1}`) }));
}

function jsonLines(text: string): FileRecord[] {
  const lines = text.split("\n").flatMap((line, index) => (line.trim() === "" ? [] : [{ line, where: `line ${index + 1}` }]));
  assertCount(lines.length); // before any of them is parsed
  return lines.map(({ line, where }) => ({ where, fields: object(jsonOf(line, where), where) }));
}

function csvRecords(text: string): FileRecord[] {
  const [header, ...rows] = parseCsv(text);
  if (!header) return [];
  assertCount(rows.length);
  const names = header.fields.map((name) => name.trim());
  if (names.length > LIMITS.importColumns) throw invalid("line 1", `has ${names.length} columns; the limit is ${LIMITS.importColumns}`);
  const seen = new Set<string>();
  const duplicate = names.find((name) => seen.has(name) || !seen.add(name));
  if (duplicate !== undefined) throw invalid("line 1", `the column ${JSON.stringify(duplicate)} is not unique`);
  return rows.map(({ line, fields }) => {
    const where = `line ${line}`;
    if (fields.length !== names.length) throw invalid(where, `has ${fields.length} fields where the header has ${names.length}`);
    return { where, fields: Object.fromEntries(names.map((name, index) => [name, fields[index]])) };
  });
}

function jsonOf(text: string, where: string): unknown {
  try {
    return parseJson(text, { values: LIMITS.importJsonValues });
  } catch (cause) {
    throw invalid(where, `is ${(cause as Error).message}`);
  }
}

function assertCount(records: number): void {
  if (records > LIMITS.importRecords)
    throw new CairnError("too_large", `The file has ${records} records; the limit is ${LIMITS.importRecords}. Split the file.`);
}

function object(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(where, "is not an object with named fields");
  return value as Record<string, unknown>;
}

function invalid(where: string, what: string): CairnError {
  return new CairnError("invalid_input", `${where}: ${what}`, { details: { where } });
}
