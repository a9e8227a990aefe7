import type { CodeFilter } from "../../../../ports/code-store.ts";
import { mapInSlices } from "../../../../scheduling/map-in-slices.ts";
import { globMatcher } from "../../../../text/glob.ts";
import type { PgValue, PostgresTx } from "../../driver/driver.ts";
import { toTimestamp } from "../../driver/time.ts";
import type { WhereFrom } from "../full-text.ts";

/** Returns the filter as a condition on `r`, a chunk or (without kinds) a file. Resolves a glob to files in the same snapshot. */
export async function conditions(tx: PostgresTx, { languages, kinds, glob, changedSince }: CodeFilter): Promise<WhereFrom> {
  const given: { readonly sql: (param: string) => string; readonly value: PgValue }[] = [];
  if (languages) given.push({ sql: (param) => `r.language = ANY (${param}::text[])`, value: languages });
  if (kinds) given.push({ sql: (param) => `r.kind = ANY (${param}::text[])`, value: kinds });
  if (changedSince !== undefined) given.push({ sql: (param) => `r.indexed_at >= ${param}::timestamptz`, value: toTimestamp(changedSince) });
  if (glob !== undefined) {
    const matches = globMatcher(glob);
    const files = await tx.all<{ file_key: number; file_path: string }>("SELECT file_key, file_path FROM indexed_files");
    // In slices: a long glob and a large index take longer than other calls may wait.
    const keys = await mapInSlices(files, ({ file_key, file_path }) => (matches(file_path) ? [file_key] : []));
    given.push({ sql: (param) => `r.file_key = ANY (${param}::bigint[])`, value: keys.flat() });
  }
  return (first) =>
    given.length === 0
      ? undefined
      : { sql: given.map(({ sql }, index) => sql(`$${first + index}`)).join(" AND "), params: given.map(({ value }) => value) };
}
