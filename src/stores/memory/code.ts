import type { SymbolDefinition } from "../../model/code-chunk.ts";
import { type CodeChunk, chunkFingerprint, chunkId, chunkText, type FileRename, type IndexedFile } from "../../model/code-index.ts";
import { hasReportEnded, REPORTS_KEPT, type StoredReport } from "../../model/index-report.ts";
import type { CodeFilter, CodeStore, FilePageQuery, FileWrite } from "../../ports/code-store.ts";
import { bm25 } from "../../text/bm25.ts";
import { globMatcher } from "../../text/glob.ts";
import { chunkTerms, PARTLY_INDEXED_CHARS } from "../../text/index-text.ts";
import { codeTerms } from "../../text/terms.ts";
import { toPlain } from "../rows/file-write.ts";
import { memoryEmbeddings } from "./embeddings.ts";

interface MemoryFile extends IndexedFile {
  readonly chunks: readonly CodeChunk[];
  readonly symbols: FileWrite["symbols"];
}

export function memoryCode(projectId: string): CodeStore {
  const files = new Map<string, MemoryFile>();
  const renames: FileRename[] = [];
  const reports = new Map<string, StoredReport>();
  const newestReports = () => [...reports.values()].sort((a, b) => compare(b.startedAt, a.startedAt) || compare(a.jobId, b.jobId));
  let generation = 0;
  const inOrder = () => [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  const allChunks = () => inOrder().flatMap(({ chunks }) => chunks);
  const embeddings = memoryEmbeddings(() =>
    allChunks()
      .map((chunk) => ({ id: chunk.id, revision: 1, text: chunkText(chunk.path, chunk) }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
  );
  const remove = (path: string) => {
    for (const { id } of files.get(path)?.chunks ?? []) embeddings.remove(id);
    files.delete(path);
  };
  const write = ({ chunks, symbols, ...file }: FileWrite, indexedAt: string) => {
    remove(file.path);
    const { path, language, contentHash } = file;
    const shared = { path, language, contentHash, generation, indexedAt };
    const stored = chunks.map(({ chunk }) => ({
      ...structuredClone(chunk),
      ...shared,
      id: chunkId(projectId, path, chunk.index, generation),
    }));
    files.set(path, { ...file, generation, indexedAt, chunks: stored, symbols: structuredClone(symbols) });
    for (const [index, { vectors }] of chunks.entries()) embeddings.put(stored[index]!.id, vectors);
  };

  return {
    embeddings,
    async commit({ at, renames: wanted = [], removes = [], files: writes = [] }) {
      generation++;
      const renamed: string[] = [];
      for (const { from, to, contentHash } of wanted) {
        const file = files.get(from);
        if (file?.contentHash !== contentHash || files.has(to)) continue;
        const chunks = file.chunks.map((chunk) => ({ chunk: plain(chunk), vectors: embeddings.of(chunk.id) }));
        remove(from);
        write({ ...toIndexed(file), path: to, chunks, symbols: file.symbols }, at);
        renames.push({ oldPath: from, newPath: to, detectedAt: at });
        renamed.push(to);
      }
      const removed: string[] = [];
      for (const { path, contentHash, renamedTo } of removes) {
        if (files.get(path)?.contentHash !== contentHash) continue;
        remove(path);
        if (renamedTo !== undefined) renames.push({ oldPath: path, newPath: renamedTo, detectedAt: at });
        removed.push(path);
      }
      for (const file of writes) write(toPlain(file), at);
      return { generation, renamed, removed };
    },
    filesAt: async (paths) =>
      inOrder()
        .filter(({ path }) => paths.includes(path))
        .map(toIndexed),
    filesWith: async (hashes) =>
      inOrder()
        .filter(({ contentHash }) => hashes.includes(contentHash))
        .map(toIndexed),
    files: async () => inOrder().map(toIndexed),
    async chunksOf(path, lines) {
      const chunks = files.get(path)?.chunks ?? [];
      const has = ({ startLine, endLine }: CodeChunk) => !lines || lines.some((line) => startLine <= line && line <= endLine);
      return structuredClone(chunks.filter(has));
    },
    vectorsOf: async (path) =>
      new Map(
        (files.get(path)?.chunks ?? []).flatMap((chunk) => {
          const vectors = embeddings.of(chunk.id);
          return vectors.length > 0 ? [[chunkFingerprint(chunk), vectors] as const] : [];
        }),
      ),
    async definitions(names, filter, limit) {
      const passes = filterOf(filter);
      return inOrder()
        .flatMap(({ path, chunks, symbols }) =>
          symbols
            .filter((symbol) => symbol.role === "definition" && names.includes(symbol.name))
            .sort((a, b) => a.line - b.line || a.column - b.column)
            .flatMap((symbol) => {
              const chunk = chunks.find(({ startLine, endLine }) => startLine <= symbol.line && symbol.line <= endLine);
              if (symbol.role !== "definition" || !chunk || !passes(chunk)) return [];
              return [{ ...definitionOf(symbol), path, chunkId: chunk.id }];
            }),
        )
        .slice(0, limit);
    },
    async references(name, filter, limit) {
      const passes = filterOf(filter);
      const sites = inOrder()
        .filter((file) => passes({ ...file, kind: "text" }))
        .flatMap(({ path, symbols }) =>
          symbols
            .filter((symbol) => symbol.role === "reference" && symbol.name === name)
            .sort((a, b) => a.line - b.line || a.column - b.column)
            .map(({ line, column }) => ({ path, line, column })),
        );
      return { sites: sites.slice(0, limit), total: sites.length };
    },
    async symbolsOf(path, lines) {
      const symbols = [...(files.get(path)?.symbols ?? [])].sort((a, b) => a.line - b.line || a.column - b.column);
      return {
        definitions: symbols.flatMap((symbol) => (symbol.role === "definition" ? [definitionOf(symbol)] : [])),
        references: symbols.flatMap(({ role, name, line, column }) =>
          role === "reference" && lines && lines.from <= line && line <= lines.to ? [{ name, line, column }] : [],
        ),
      };
    },
    async pathsWith(words, filter) {
      const passes = filterOf(filter);
      const terms = words.flatMap(codeTerms);
      const has = (chunk: CodeChunk) => {
        const own = new Set(codeTerms(chunkTerms(chunk.path, chunk)));
        return chunk.text.length > PARTLY_INDEXED_CHARS || terms.every((term) => own.has(term));
      };
      return inOrder()
        .filter((file) => passes({ ...file, kind: "text" }) && (terms.length === 0 || file.chunks.some(has)))
        .map(({ path }) => path);
    },
    async report(report) {
      const cancelRequested = reports.get(report.jobId)?.cancelRequested ?? false;
      reports.set(report.jobId, { ...structuredClone(report), cancelRequested });
      for (const { jobId } of newestReports().slice(REPORTS_KEPT)) reports.delete(jobId);
      return { cancelRequested };
    },
    reports: async () => structuredClone(newestReports()),
    async requestCancel(jobId) {
      const found = reports.get(jobId);
      if (found && !hasReportEnded(found)) reports.set(jobId, { ...found, cancelRequested: true });
      return structuredClone(reports.get(jobId));
    },
    async filePage({ sortBy, limit, offset, ...filter }) {
      const passes = filterOf(filter);
      const found = inOrder().filter((file) => passes({ ...file, kind: "text" }));
      return {
        files: found
          .sort(ORDER[sortBy])
          .slice(offset, offset + limit)
          .map(toIndexed),
        total: found.length,
      };
    },
    renames: async (limit) => structuredClone(renames.toReversed().slice(0, limit)),
    async counts() {
      const languages = new Map<string, { files: number; chunks: number }>();
      for (const { language, chunks } of files.values()) {
        const known = languages.get(language) ?? { files: 0, chunks: 0 };
        languages.set(language, { files: known.files + 1, chunks: known.chunks + chunks.length });
      }
      const symbols = [...files.values()].flatMap((file) => file.symbols);
      const definitions = symbols.filter(({ role }) => role === "definition").length;
      return {
        files: files.size,
        chunks: allChunks().length,
        definitions,
        references: symbols.length - definitions,
        bytes: [...files.values()].reduce((sum, { bytes }) => sum + bytes, 0),
        renames: renames.length,
        generation,
        lastIndexedAt: [...files.values()]
          .map(({ indexedAt }) => indexedAt)
          .sort()
          .at(-1),
        languages: [...languages]
          .map(([language, counted]) => ({ language, ...counted }))
          .sort((a, b) => b.files - a.files || (a.language < b.language ? -1 : 1)),
      };
    },
    reconcile: async () => NONE,
    orphans: async () => NONE,
    async dropDamaged() {},
    compact: async (keepRenames) => ({
      forgottenRenames: renames.splice(0, Math.max(0, renames.length - keepRenames)).length,
      freedBytes: 0,
    }),
    async candidates({ filter, limit, semanticLimit = limit, text, semantic }) {
      const passes = filterOf(filter);
      const texts = new Map(
        allChunks()
          .filter(passes)
          .map((chunk) => [chunk.id, chunkTerms(chunk.path, chunk)]),
      );
      return {
        keyword: text === undefined ? [] : bm25(texts, text).slice(0, limit),
        semantic: semantic ? embeddings.nearest(semantic.versionId, semantic.vector, texts.keys(), semanticLimit) : [],
      };
    },
    async similarities(versionId, vector, ids) {
      return new Map(
        ids.flatMap((id) => {
          const cosine = embeddings.cosine(versionId, id, vector);
          return cosine === undefined ? [] : [[id, cosine] as const];
        }),
      );
    },
    async getMany(ids) {
      const byId = new Map(allChunks().map((chunk) => [chunk.id, chunk]));
      return structuredClone(ids.flatMap((id) => byId.get(id) ?? []));
    },
  };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const ORDER: Readonly<Record<FilePageQuery["sortBy"], (a: IndexedFile, b: IndexedFile) => number>> = {
  path: () => 0,
  bytes: (a, b) => b.bytes - a.bytes,
  indexed_at: (a, b) => compare(b.indexedAt, a.indexedAt),
};

/** Rows that belong to nothing cannot come about here: everything hangs on its file. */
const NONE = { rows: 0, terms: 0, vectors: 0 };

function definitionOf({ role: _, ...definition }: SymbolDefinition): Omit<SymbolDefinition, "role"> {
  return structuredClone(definition);
}

function toIndexed({ chunks: _chunks, symbols: _symbols, ...file }: MemoryFile): IndexedFile {
  return file;
}

function plain({ index, kind, name, parents, defines, startLine, endLine, text }: CodeChunk) {
  return { index, kind, ...(name !== undefined && { name }), parents, defines, startLine, endLine, text };
}

function filterOf({ languages, kinds, glob, changedSince }: CodeFilter) {
  const matches = glob === undefined ? () => true : globMatcher(glob);
  return ({ language, kind, path, indexedAt }: Pick<CodeChunk, "language" | "kind" | "path" | "indexedAt">): boolean =>
    (!languages || languages.includes(language)) &&
    (!kinds || kinds.includes(kind)) &&
    (changedSince === undefined || indexedAt >= changedSince) &&
    matches(path);
}
