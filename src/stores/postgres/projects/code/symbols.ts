import type { DefinitionSite, FileSymbols, ReferenceSite } from "../../../../model/code-index.ts";
import type { CodeFilter } from "../../../../ports/code-store.ts";
import { referencesWithin, unpackOutline, unpackPositions } from "../../../../text/index-text.ts";
import type { PostgresTx } from "../../driver/driver.ts";
import { conditions } from "./filter.ts";

export async function findDefinitions(
  tx: PostgresTx,
  names: readonly string[],
  filter: CodeFilter,
  limit: number,
): Promise<DefinitionSite[]> {
  const { kinds, ...ofFiles } = filter;
  const files = (await conditions(tx, ofFiles))(3);
  // Every file has at least one site, unless it is one in a chunk of another kind.
  const defining = await tx.all<{ file_key: number; path: string; body: Uint8Array }>(
    `SELECT r.file_key, r.file_path AS path, o.body FROM indexed_files r JOIN code_outlines o ON o.file_key = r.file_key
      WHERE r.file_key IN (SELECT s.file_key FROM code_symbols s WHERE s.name = ANY ($1::text[]) AND s.defined > 0) AND ${files?.sql ?? "true"}
      ORDER BY r.file_path LIMIT $2`,
    names,
    kinds ? null : limit,
    ...(files?.params ?? []),
  );
  const wanted = new Set(names);
  const sites = defining.flatMap(({ file_key, path, body }) =>
    unpackOutline(body)
      .definitions.filter(({ name }) => wanted.has(name))
      .map((definition) => ({ ...definition, path, file_key })),
  );
  const ofKind = (await conditions(tx, { kinds }))(3);
  const chunks = await tx.all<{ place: number; id: string }>(
    `SELECT g.place, r.id FROM unnest($1::bigint[], $2::int[]) WITH ORDINALITY AS g (file_key, line, place)
       JOIN current_chunks r ON r.file_key = g.file_key AND g.line BETWEEN r.start_line AND r.end_line WHERE ${ofKind?.sql ?? "true"}`,
    sites.map(({ file_key }) => file_key),
    sites.map(({ line }) => line),
    ...(ofKind?.params ?? []),
  );
  const chunkAt = new Map(chunks.map(({ place, id }) => [place - 1, id]));
  return sites
    .flatMap(({ file_key: _, ...site }, place) => {
      const chunkId = chunkAt.get(place);
      return chunkId === undefined ? [] : [{ ...site, chunkId }];
    })
    .slice(0, limit);
}

export async function readSymbols(
  tx: PostgresTx,
  path: string,
  lines?: { readonly from: number; readonly to: number },
): Promise<FileSymbols> {
  const outline = await tx.get<{ file_key: number; body: Uint8Array }>(
    "SELECT o.file_key, o.body FROM indexed_files r JOIN code_outlines o ON o.file_key = r.file_key WHERE r.file_path = $1",
    path,
  );
  if (!outline) return { definitions: [], references: [] };
  const { definitions } = unpackOutline(outline.body);
  if (!lines) return { definitions, references: [] };
  const rows = await tx.all<{ name: string; positions: Uint8Array }>(
    "SELECT name, positions FROM code_symbols WHERE file_key = $1 AND used > 0",
    outline.file_key,
  );
  return { definitions, references: referencesWithin(rows, lines) };
}

export async function findReferences(
  tx: PostgresTx,
  name: string,
  filter: Omit<CodeFilter, "kinds">,
  limit: number,
): Promise<{ readonly sites: readonly ReferenceSite[]; readonly total: number }> {
  const where = (await conditions(tx, filter))(2);
  const rows = await tx.all<{ path: string; used: number; positions: Uint8Array }>(
    `SELECT r.file_path AS path, s.used, s.positions FROM code_symbols s JOIN indexed_files r ON r.file_key = s.file_key
      WHERE s.name = $1 AND s.used > 0 AND ${where?.sql ?? "true"} ORDER BY r.file_path`,
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
