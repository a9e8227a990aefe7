import { join } from "node:path";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { extractQueryTerms, extractTerms } from "../../src/text/terms.ts";
import type { Bench } from "../frame.ts";
import type { Source } from "./sources.ts";

/** Paths, best first. */
export type FileRanking = (query: string) => Promise<readonly string[]>;

/** Ranks whole files and their paths by BM25 (SQLite FTS5). Identifiers are split as in Cairn, so that only the ranking differs. */
export async function bm25OverFiles(bench: Bench, sources: readonly Source[]): Promise<FileRanking> {
  const database = await openSqlite({ path: join(bench.scratch(), "files.db") });
  bench.defer(() => database.close());
  await database.write((tx) => {
    tx.exec("CREATE VIRTUAL TABLE files USING fts5(path UNINDEXED, words, tokenize = \"unicode61 remove_diacritics 0 tokenchars '_$'\")");
    for (const { path, content } of sources)
      tx.run("INSERT INTO files (path, words) VALUES (?, ?)", path, extractTerms(`${path}\n${content}`).join(" "));
  });
  return async (query) => {
    const asked = extractQueryTerms(query).map((word) => `"${word.replaceAll('"', '""')}"`);
    if (asked.length === 0) return [];
    return database.read((tx) =>
      tx
        .all<{ path: string }>("SELECT path FROM files WHERE files MATCH ? ORDER BY bm25(files), path LIMIT 10", asked.join(" OR "))
        .map(({ path }) => path),
    );
  };
}

/** Ranks files by the number of lines in which ripgrep finds any word of the question, ignoring case. */
export async function ripgrepByLines(bench: Bench, tree: string): Promise<FileRanking> {
  const { search } = (await bench.peer("ripgrep")) as { search(folder: string, words: readonly string[]): Promise<string> };
  return async (query) => {
    const lines = new Map<string, number>();
    for (const [, path] of (await search(tree, extractQueryTerms(query))).matchAll(/^(?:\.[/\\])?(.+?):\d+:/gm)) {
      const file = path!.replaceAll("\\", "/");
      lines.set(file, (lines.get(file) ?? 0) + 1);
    }
    return [...lines]
      .sort(([a, most], [b, more]) => more - most || (a < b ? -1 : 1))
      .slice(0, 10)
      .map(([path]) => path);
  };
}
