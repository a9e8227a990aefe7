import { z } from "zod";
import { AnchorFields } from "../freshness/anchor-fields.ts";
import { CairnError } from "../model/errors.ts";
import { framedHash } from "../model/ids.ts";
import { KNOWLEDGE_KINDS, type KnowledgeKind } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import { problemOf } from "../operations/describe-issue.ts";
import { Id, text } from "../operations/schemas.ts";
import { mapInSlices } from "../scheduling/map-in-slices.ts";
import type { ImportRecord } from "./import.ts";
import { type FileRecord, parseRecordFile, type RecordFormat } from "./record-file.ts";
import type { LabelledQuery } from "./validate.ts";

/** Other names of the fields that files may use. */
const ALIASES: Readonly<Record<string, string>> = {
  template_id: "id",
  question_text: "question",
  answer_text: "answer",
  error: "question",
  solution: "answer",
};

const RecordFields = z.object({
  id: Id.optional(),
  kind: z.enum(KNOWLEDGE_KINDS).optional(),
  category: text(LIMITS.categoryChars).default(""),
  subcategory: text(LIMITS.categoryChars).default(""),
  question: text(LIMITS.questionChars, 1),
  answer: text(LIMITS.answerChars, 1),
  created_at: z.iso.datetime({ offset: true }).optional(),
  updated_at: z.iso.datetime({ offset: true }).optional(),
});

/** A validated record of an import. */
export const ImportedKnowledge = RecordFields.required({ id: true, kind: true }).extend({ anchors: AnchorFields.anchors });

const LabelFields = z.object({ query: text(LIMITS.questionChars, 1), id: Id });

export interface ReadRecords {
  readonly records: readonly ImportRecord[];
  /** Fields of the file that the import ignores. */
  readonly ignored: readonly string[];
}

/** Parses and validates the records of a file. Raises `invalid_input` with the invalid rows. */
export async function readRecords(content: string, format: RecordFormat | undefined, fallbackKind: KnowledgeKind): Promise<ReadRecords> {
  const rows = parseRecordFile(content, format).map(({ where, fields }) => ({ where, fields: renameAliases(fields) }));
  const records = (await parseRows(rows, RecordFields)).map(({ where, value }) => {
    const { id, kind = fallbackKind, created_at: createdAt, updated_at: updatedAt = createdAt, ...rest } = value;
    const content = { kind, ...rest, createdAt, updatedAt };
    // A record without an id is identified by its question: a new answer is a change, a new question a new record.
    const derivedId = () => `q-${framedHash(kind, rest.category, rest.subcategory, rest.question).slice(0, 24)}`;
    return { where, record: { id: id ?? derivedId(), ...content } };
  });
  const first = new Map<string, string>();
  for (const { where, record } of records) {
    const before = first.get(record.id);
    if (before !== undefined) throw problem([`${where}: the id ${JSON.stringify(record.id)} is used by ${before}`]);
    first.set(record.id, where);
  }
  const known = new Set(Object.keys(RecordFields.shape));
  const ignored = [...new Set(rows.flatMap(({ fields }) => Object.keys(fields)))].filter((name) => !known.has(name));
  return { records: records.map(({ record }) => record), ignored: ignored.slice(0, 50) };
}

/** Parses questions, each with the id of the record that answers it. */
export async function readLabelled(content: string): Promise<readonly LabelledQuery[]> {
  const rows = parseRecordFile(content).map(({ where, fields }) => {
    const { question, expected, ...rest } = renameAliases(fields);
    return { where, fields: { query: question, id: expected, ...rest } };
  });
  return (await parseRows(rows, LabelFields)).map(({ value }) => value);
}

function renameAliases(fields: FileRecord["fields"]): Record<string, unknown> {
  const entries = Object.entries(fields)
    // Spreadsheets write empty cells for missing values.
    .filter(([, value]) => value !== "" && value !== null)
    .map(([name, value]) => [Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name, value] as const);
  return Object.fromEntries(entries);
}

async function parseRows<Schema extends z.ZodObject>(
  rows: readonly FileRecord[],
  schema: Schema,
): Promise<{ where: string; value: z.output<Schema> }[]> {
  const problems: string[] = [];
  const values = await mapInSlices(rows, ({ where, fields }) => {
    const parsed = schema.safeParse(fields);
    if (parsed.success) return [{ where, value: parsed.data }];
    for (const issue of parsed.error.issues) problems.push(`${where}: ${issue.path.join(".")} ${problemOf(issue)}`);
    return [];
  });
  if (problems.length > 0) throw problem(problems);
  return values.flat();
}

const PROBLEMS_SHOWN = 10;

function problem(problems: readonly string[]): CairnError {
  const more = problems.length > PROBLEMS_SHOWN ? `; and ${problems.length - PROBLEMS_SHOWN} more` : "";
  return new CairnError("invalid_input", `${problems.slice(0, PROBLEMS_SHOWN).join("; ")}${more}. Nothing was imported.`, {
    details: { problems: problems.slice(0, 100) },
  });
}
