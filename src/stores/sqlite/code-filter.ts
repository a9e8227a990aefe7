import type { CodeFilter } from "../../ports/code-store.ts";
import { globMatcher } from "../../text/glob.ts";
import type { SqliteTx, SqlValue } from "./driver.ts";
import type { Where } from "./words.ts";

export const IN_LIST = "IN (SELECT value FROM json_each(?))";

/** The filter as a condition on `r`, a chunk or (without kinds) a file; absent when everything matches. */
export function whereOf(tx: SqliteTx, { languages, kinds, glob, changedSince }: CodeFilter): Where | undefined {
  const sql: string[] = [];
  const params: SqlValue[] = [];
  const add = (condition: string, value: SqlValue) => {
    sql.push(condition);
    params.push(value);
  };
  if (languages) add(`r.language ${IN_LIST}`, JSON.stringify(languages));
  if (kinds) add(`r.kind ${IN_LIST}`, JSON.stringify(kinds));
  if (changedSince !== undefined) add("r.indexed_at >= ?", changedSince);
  if (glob !== undefined) {
    const matches = globMatcher(glob);
    const files = tx.all<{ file_key: number; file_path: string }>("SELECT file_key, file_path FROM indexed_files");
    add(`r.file_key ${IN_LIST}`, JSON.stringify(files.filter(({ file_path }) => matches(file_path)).map(({ file_key }) => file_key)));
  }
  return sql.length === 0 ? undefined : { sql: sql.join(" AND "), params };
}
