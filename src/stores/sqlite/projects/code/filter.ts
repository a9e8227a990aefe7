import type { CodeFilter } from "../../../../ports/code-store.ts";
import { mapInSlices } from "../../../../scheduling/map-in-slices.ts";
import { globMatcher } from "../../../../text/glob.ts";
import type { DatabaseHandle } from "../../driver/databases.ts";
import type { SqlValue } from "../../driver/driver.ts";
import type { Where } from "../full-text.ts";

export const IN_LIST = "IN (SELECT value FROM json_each(?))";

/** A filter whose glob was resolved to files of the index. */
export interface FileFilter extends Omit<CodeFilter, "glob"> {
  readonly glob?: undefined;
  /** Keys of the files that match the glob; absent without a glob. */
  readonly files?: readonly number[] | undefined;
}

/** Matches the glob with every path, in slices, because a long glob on a large index would block the event loop. */
export async function matchGlob<Filter extends CodeFilter>(
  database: DatabaseHandle,
  { glob, ...filter }: Filter,
  signal?: AbortSignal,
): Promise<Omit<Filter, "glob"> & FileFilter> {
  if (glob === undefined) return filter;
  const matches = globMatcher(glob);
  const all = (await database()).read((tx) =>
    tx.all<{ file_key: number; file_path: string }>("SELECT file_key, file_path FROM indexed_files"),
  );
  const files = await mapInSlices(all, ({ file_key, file_path }) => (matches(file_path) ? [file_key] : []), signal);
  return { ...filter, files: files.flat() };
}

/** Returns the filter as a condition on `r`, a chunk or (without kinds) a file; `undefined` when everything matches. */
export function whereOf({ languages, kinds, files, changedSince }: FileFilter): Where | undefined {
  const sql: string[] = [];
  const params: SqlValue[] = [];
  const add = (condition: string, value: SqlValue) => {
    sql.push(condition);
    params.push(value);
  };
  if (languages) add(`r.language ${IN_LIST}`, JSON.stringify(languages));
  if (kinds) add(`r.kind ${IN_LIST}`, JSON.stringify(kinds));
  if (changedSince !== undefined) add("r.indexed_at >= ?", changedSince);
  if (files) add(`r.file_key ${IN_LIST}`, JSON.stringify(files));
  return sql.length === 0 ? undefined : { sql: sql.join(" AND "), params };
}
