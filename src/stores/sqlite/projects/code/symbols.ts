import type { DefinitionSite, FileSymbols, ReferenceSite } from "../../../../model/code-index.ts";
import { referencesWithin, unpackOutline, unpackPositions } from "../../../../text/index-text.ts";
import type { SqliteTx } from "../../driver/driver.ts";
import { type FileFilter, IN_LIST, whereOf } from "./filter.ts";

/** Returns definitions by path. Reads outlines only until the limit is reached. */
export function findDefinitions(tx: SqliteTx, names: readonly string[], filter: FileFilter, limit: number): DefinitionSite[] {
  const { kinds, ...ofFiles } = filter;
  const files = whereOf(ofFiles);
  const chunks = whereOf({ kinds });
  const wanted = new Set(names);
  const defining = tx.all<{ file_key: number; path: string }>(
    `SELECT DISTINCT r.file_key, r.file_path AS path FROM code_symbols s JOIN indexed_files r ON r.file_key = s.file_key
      WHERE s.name ${IN_LIST} AND s.defined > 0 AND ${files?.sql ?? "true"} ORDER BY r.file_path`,
    JSON.stringify(names),
    ...(files?.params ?? []),
  );
  const sites: DefinitionSite[] = [];
  for (const { file_key, path } of defining) {
    if (sites.length >= limit) break;
    const outline = tx.get<{ body: Uint8Array }>("SELECT body FROM code_outlines WHERE file_key = ?", file_key);
    for (const definition of outline ? unpackOutline(outline.body).definitions : []) {
      if (!wanted.has(definition.name)) continue;
      const chunk = tx.get<{ id: string }>(
        `SELECT r.id FROM current_chunks r WHERE r.file_key = ? AND ? BETWEEN r.start_line AND r.end_line AND ${chunks?.sql ?? "true"}`,
        file_key,
        definition.line,
        ...(chunks?.params ?? []),
      );
      if (chunk) sites.push({ ...definition, path, chunkId: chunk.id });
    }
  }
  return sites.slice(0, limit);
}

/** Reads the symbols of a file. The outline lists its names, because an index by file would hold every name a second time. */
export function readSymbols(tx: SqliteTx, fileKey: number, lines?: { readonly from: number; readonly to: number }): FileSymbols {
  const outline = tx.get<{ body: Uint8Array }>("SELECT body FROM code_outlines WHERE file_key = ?", fileKey);
  if (!outline) return { definitions: [], references: [] };
  const { definitions, names } = unpackOutline(outline.body);
  if (!lines) return { definitions, references: [] };
  const rows = tx.all<{ name: string; positions: Uint8Array }>(
    `SELECT s.name, s.positions FROM json_each(?) wanted CROSS JOIN code_symbols s ON s.name = wanted.value AND s.file_key = ? WHERE s.used > 0`,
    JSON.stringify(names),
    fileKey,
  );
  return { definitions, references: referencesWithin(rows, lines) };
}

export function findReferences(
  tx: SqliteTx,
  name: string,
  filter: Omit<FileFilter, "kinds">,
  limit: number,
): { readonly sites: readonly ReferenceSite[]; readonly total: number } {
  const where = whereOf(filter);
  const rows = tx.all<{ path: string; used: number; positions: Uint8Array }>(
    `SELECT r.file_path AS path, s.used, s.positions FROM code_symbols s JOIN indexed_files r ON r.file_key = s.file_key
      WHERE s.name = ? AND s.used > 0 AND ${where?.sql ?? "true"} ORDER BY r.file_path`,
    name,
    ...(where?.params ?? []),
  );
  const sites: ReferenceSite[] = [];
  for (const { path, positions } of rows) {
    if (sites.length >= limit) break;
    for (const position of unpackPositions(positions)) sites.push({ path, ...position });
  }
  return { sites: sites.slice(0, limit), total: rows.reduce((sum, { used }) => sum + used, 0) };
}
