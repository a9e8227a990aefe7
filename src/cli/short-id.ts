import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { Operation } from "../operations/operation.ts";
import { usage } from "./argv.ts";

type Fields = Readonly<Record<string, unknown>>;
/** Calls another operation of the same client. */
export type CallOperation = (name: string, input: Fields) => Promise<Fields>;

/** Where the ids of a field are listed, newest first. */
interface IdSource {
  readonly list: string;
  /** The field of the list's output, and the field of its items. */
  readonly items: string;
  readonly id: string;
  /** The operation that reads one record: an exact id wins over a prefix. */
  readonly get?: string | undefined;
  /** Fields of the call that the list needs too. */
  readonly within: readonly string[];
  /** Lists deleted records. */
  readonly deleted?: boolean;
}

const CHECKPOINTS: IdSource = { list: "checkpoint_list", items: "checkpoints", id: "id", get: "checkpoint_get", within: ["project_path"] };
const KNOWLEDGE: IdSource = {
  list: "knowledge_list",
  items: "knowledge",
  id: "id",
  get: "knowledge_get",
  within: ["project_path", "scope"],
};
const REVIEWS: IdSource = { list: "review_list", items: "records", id: "id", within: ["project_path"] };
const RUNS: IdSource = { list: "run_list", items: "runs", id: "run_id", get: "run_get", within: [] };
const SYSTEMS: IdSource = { list: "system_list", items: "systems", id: "system_id", within: [] };
const SNAPSHOTS: IdSource = { list: "system_snapshots", items: "snapshots", id: "id", within: ["system_id"] };
const BACKUPS: IdSource = { list: "backup_list", items: "backups", id: "id", within: [] };
const KEYS: IdSource = { list: "key_list", items: "keys", id: "id", within: [] };
const JOBS: IdSource = { list: "code_status", items: "jobs", id: "job_id", within: ["project_path"] };

/** Fields that hold an id of an existing record, by operation and field. The first pattern that matches counts. */
const SOURCES: readonly (readonly [pattern: RegExp, source: IdSource])[] = [
  [/^checkpoint_restore\.id$/, { ...CHECKPOINTS, get: undefined, deleted: true }],
  [/^knowledge_restore\.id$/, { ...KNOWLEDGE, get: undefined, deleted: true }],
  [/^checkpoint_\w+\.id$/, CHECKPOINTS],
  [/^knowledge_(get|update|delete|purge|feedback)\.id$/, KNOWLEDGE],
  [/^review_resolve\.id$/, REVIEWS],
  [/^run_\w+\.run_id$/, RUNS],
  [/^system_\w+\.system_id$/, SYSTEMS],
  [/^system_\w+\.snapshot_id$/, SNAPSHOTS],
  [/^(backup_verify|restore)\.id$/, BACKUPS],
  [/^key_(revoke|rotate)\.id$/, KEYS],
  [/^code_cancel\.job_id$/, JOBS],
];

const FULL_UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const CANDIDATES_SHOWN = 5;
/** Records among which a prefix is looked for. */
const SEARCHED = 10_000;

/** Replaces `latest`, `@2` and unique prefixes by the ids that they stand for. A text that stands for none is passed unchanged. */
export async function resolveShortIds(operation: Operation, input: Fields, call: CallOperation): Promise<Fields> {
  const resolved: Record<string, unknown> = { ...input };
  // In the order of the schema: the snapshots of a system are listed by its full id.
  for (const field of Object.keys(operation.input.shape)) {
    const value = resolved[field];
    const source = SOURCES.find(([pattern]) => pattern.test(`${operation.name}.${field}`))?.[1];
    if (source && typeof value === "string" && value !== "" && !FULL_UUID.test(value))
      resolved[field] = await resolveId(value, source, resolved, call);
  }
  return resolved;
}

async function resolveId(text: string, source: IdSource, input: Fields, call: CallOperation): Promise<string> {
  const place = Object.fromEntries(source.within.filter((name) => input[name] !== undefined).map((name) => [name, input[name]]));
  const position = text === "latest" ? 1 : Number(/^@([1-9]\d{0,3})$/.exec(text)?.[1]);
  if (position > 0) return idAt(position, text, source, place, call);
  if (source.get !== undefined && (await exists(source, place, text, call))) return text;
  const matches: string[] = [];
  for await (const id of listIds(source, place, SEARCHED, call)) {
    if (id === text) return text;
    if (id.toLowerCase().startsWith(text.toLowerCase())) matches.push(id);
  }
  if (matches.length > 1) throw ambiguous(text, matches);
  return matches[0] ?? text;
}

async function idAt(position: number, text: string, source: IdSource, place: Fields, call: CallOperation): Promise<string> {
  let count = 0;
  for await (const id of listIds(source, place, position, call)) if (++count === position) return id;
  const noun = source.items.replaceAll("_", " ");
  throw new CairnError("not_found", `There is no ${text}: the list has ${count} ${noun}.`);
}

async function exists(source: IdSource, place: Fields, id: string, call: CallOperation): Promise<boolean> {
  try {
    await call(source.get!, { ...place, [source.id]: id });
    return true;
  } catch (error) {
    if (error instanceof CairnError && (error.code === "not_found" || error.code === "invalid_input")) return false;
    throw error;
  }
}

/** Yields ids in the order of the list, page by page. */
async function* listIds({ list, items, id, deleted }: IdSource, place: Fields, max: number, call: CallOperation): AsyncGenerator<string> {
  const paged = list === "checkpoint_list" || list === "knowledge_list" || list === "run_list";
  const limit =
    list === "code_status"
      ? { limit: 20 }
      : paged || list === "backup_list" || list === "review_list"
        ? { limit: Math.min(max, LIMITS.listMax) }
        : {};
  let cursor: unknown;
  let count = 0;
  do {
    const page = await call(list, { ...place, ...limit, ...(deleted && { deleted }), ...(cursor !== undefined && { cursor }) });
    for (const item of page[items] as readonly Fields[]) {
      yield String(item[id]);
      count++;
    }
    cursor = paged ? page.next_cursor : undefined;
  } while (cursor !== undefined && count < max);
}

function ambiguous(text: string, matches: readonly string[]): CairnError {
  const shown = matches.slice(0, CANDIDATES_SHOWN).join(", ");
  const more = matches.length > CANDIDATES_SHOWN ? ` and ${matches.length - CANDIDATES_SHOWN} more` : "";
  return usage(`${JSON.stringify(text.slice(0, 60))} is ambiguous: it matches ${shown}${more}. Give more characters.`);
}
