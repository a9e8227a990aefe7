import { z } from "zod";
import { CODE_KINDS, type CodeKind } from "../model/code-chunk.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { ProjectId, text } from "../operations/schemas.ts";
import { Explain } from "../operations/search-schemas.ts";
import type { CodeFilter } from "../ports/code-store.ts";
import { matchNote } from "../recall/fuse.ts";
import { estimateTokens, withinBudget } from "../text/estimate-tokens.ts";
import { trimTrailing } from "../text/trim-trailing.ts";
import { compactContexts, compactSearch, compactUsages, contextText, searchText, usagesText } from "./answer-text.ts";
import { PATH_ROLES } from "./query.ts";
import type { CodeAnswer } from "./search.ts";
import type { CodeContext } from "./service.ts";
import { readSymbolPath } from "./structure/symbol-path.ts";
import { ContextOutput, FilePath, FilterFields, Glob, MaxTokens, readLanguage, SearchOutput, UsagesOutput } from "./wire-schemas.ts";

/** Lines of each hit in a terminal. */
const TERMINAL_LINES = 8;

export const codeSearch = operation({
  name: "code_search",
  summary: "Search the indexed code by semantic, keyword and symbol search.",
  input: z.strictObject({
    project_path: ProjectId,
    query: text(LIMITS.longQuestionChars, 1).describe("Question, symbol name, or an issue with its stack trace."),
    top_k: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault).describe("Maximum hits."),
    mode: z.enum(["hybrid", "semantic", "keyword"]).default("hybrid").describe("hybrid combines both."),
    ...FilterFields,
    include: z.array(z.enum(PATH_ROLES)).max(PATH_ROLES.length).optional().describe("Do not down-rank files of these roles."),
    context_lines: z.int().min(0).max(LIMITS.codeContextLines).default(0).describe("Lines around each hit."),
    max_tokens: MaxTokens,
    explain: Explain,
  }),
  output: SearchOutput,
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "core",
  mcp: {
    compact: compactSearch,
    rows: "results",
    unlisted: ["mode", "include", "changed_since", "explain"],
    searchHint: "find code by question or name",
  },
  http: { method: "POST", path: "/search" },
  cli: {
    positional: ["query"],
    examples: [
      'cairn code search "where is the retry with backoff"',
      "cairn code search parseConfig --languages typescript --glob 'src/**'",
      'cairn code search "test of the parser" --include test --context-lines 5',
    ],
    text: (output, style) => searchText(output, style, TERMINAL_LINES),
  },
  render: (output) => searchText(output),
  async run(cairn, { projectPath, query, topK, mode, include, contextLines, maxTokens, explain, ...filter }, { signal }) {
    const asked = { projectPath, query, topK, mode, include, contextLines, maxTokens, ...filterOf(filter) };
    const { weights, ...answer } = await cairn.code.search(asked, { signal });
    const output = await toSearchOutput(answer, async () => (await cairn.code.stats({ projectPath })).files);
    return { ...output, ...(explain && { weights }) };
  },
});

export const codeSimilar = operation({
  name: "code_similar",
  summary: "Find code similar to a text or to a line of a file.",
  input: z.strictObject({
    project_path: ProjectId,
    text: text(LIMITS.answerChars, 1).optional(),
    path: FilePath.optional(),
    line: z.int().min(1).optional().describe("With path. Default: 1."),
    top_k: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault),
    ...FilterFields,
    max_tokens: MaxTokens,
  }),
  output: SearchOutput,
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "code",
  mcp: { compact: compactSearch, rows: "results" },
  http: { method: "POST", path: "/similar" },
  cli: {
    positional: ["path", "line"],
    examples: ["cairn code similar src/retry.ts 12", "cairn code similar --text - < snippet.py"],
    text: (output, style) => searchText(output, style, TERMINAL_LINES),
  },
  render: (output) => searchText(output),
  async run(cairn, { projectPath, text: like, path, line, topK, maxTokens, ...filter }, { signal }) {
    if ((like === undefined) === (path === undefined)) throw new CairnError("invalid_input", "Set exactly one of text and path.");
    const what = path === undefined ? { text: like! } : { path: indexedPath(projectPath, path), line: line ?? 1 };
    const answer = await cairn.code.similar({ projectPath, topK, ...filterOf(filter), ...what }, { signal });
    const hits = withinBudget(answer.hits, maxTokens, (hit) => estimateTokens(hit.text) + 20);
    return toSearchOutput({ ...answer, hits, omitted: answer.hits.length - hits.length });
  },
});

export const codeUsages = operation({
  name: "code_usages",
  summary: "List the definitions and references of a symbol, exactly, by syntax.",
  input: z.strictObject({
    project_path: ProjectId,
    symbol: text(LIMITS.symbolChars, 1),
    glob: Glob.optional(),
    limit: z.int().min(1).max(LIMITS.listMax).default(50),
  }),
  output: UsagesOutput,
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "core",
  mcp: { compact: compactUsages, rows: "references", unlisted: ["detail"], searchHint: "references, callers, definition" },
  http: { method: "POST", path: "/usages" },
  cli: {
    positional: ["symbol"],
    examples: ["cairn code usages retryWithBackoff", "cairn code usages JobQueue.run --glob 'src/**'"],
    text: usagesText,
  },
  render: (output) => usagesText(output),
  async run(cairn, { projectPath, symbol, limit, glob }) {
    const { excluded, ownerUnknown, ...found } = await cairn.code.usages({ projectPath, symbol, limit, glob });
    const { definitions, references, totalReferences } = found;
    const { name, owner } = readSymbolPath(symbol);
    if (definitions.length + references.length === 0)
      return { ...found, note: `No symbol ${JSON.stringify(name)} in the index. Try code_search.` };
    const notes = [
      ...(ownerUnknown ? [`${owner} defines no ${name} in the index, so these are all uses of ${name}.`] : []),
      ...(totalReferences > references.length
        ? [`Showing ${references.length}. Use a glob or a higher limit (at most ${LIMITS.listMax}) for the rest.`]
        : []),
      ...(excluded > 0 ? [`${excluded} other uses of ${name} have another or an unknown receiver. Ask for ${name} to list them.`] : []),
    ];
    return { ...found, ...(notes.length > 0 && { note: notes.join(" ") }) };
  },
});

export const codeContext = operation({
  name: "code_context",
  summary: "Read lines of an indexed file, or a symbol's whole definition.",
  input: z.strictObject({
    project_path: ProjectId,
    path: FilePath.optional(),
    start_line: z.int().min(1).optional(),
    end_line: z.int().min(1).optional(),
    symbol: text(LIMITS.symbolChars, 1).optional().describe("Instead of path."),
    glob: Glob.optional(),
    max_tokens: MaxTokens,
  }),
  output: ContextOutput,
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "core",
  mcp: { compact: compactContexts, searchHint: "read a function or lines" },
  http: { method: "POST", path: "/context" },
  cli: {
    positional: ["path", "start_line", "end_line"],
    examples: ["cairn code context src/retry.ts 10 40", "cairn code context --symbol retryWithBackoff"],
    text: contextText,
    wholeLines: true,
  },
  render: (output) => contextText(output),
  async run(cairn, { projectPath, path, startLine, endLine, symbol, glob, maxTokens }) {
    if ((path === undefined) === (symbol === undefined)) throw new CairnError("invalid_input", "Set exactly one of path and symbol.");
    if (startLine !== undefined && endLine !== undefined && startLine > endLine)
      throw new CairnError("invalid_input", "end_line: must not be before start_line.");
    if (path !== undefined)
      return fitContexts(await cairn.code.context({ projectPath, path: indexedPath(projectPath, path), startLine, endLine }), maxTokens);
    const define = (name: string) => cairn.code.context({ projectPath, symbol: name, glob });
    const found = await define(symbol!);
    const contexts = found.length > 0 ? found : await define(readSymbolPath(symbol!).name);
    if (contexts.length === 0)
      throw new CairnError("not_found", `No definition of ${JSON.stringify(symbol)} in the index. Try code_search.`);
    return fitContexts(contexts, maxTokens);
  },
});

export const codeOperations = [codeSearch, codeUsages, codeContext, codeSimilar];

interface WireFilter {
  readonly glob?: string | undefined;
  readonly languages?: readonly string[] | undefined;
  readonly kinds?: readonly string[] | undefined;
  readonly changedSince?: string | undefined;
}

function filterOf({ glob, languages, kinds, changedSince }: WireFilter): CodeFilter {
  return { glob, languages: languages?.map(readLanguage), kinds: kinds?.map(readKind), changedSince };
}

function readKind(name: string): CodeKind {
  const kind = CODE_KINDS.find((one) => one === name.trim().toLowerCase());
  if (kind === undefined) throw new CairnError("invalid_input", `kinds: ${JSON.stringify(name)} is not one of ${CODE_KINDS.join(", ")}`);
  return kind;
}

/** Returns a path relative to the project, as the index stores it: agents also send `./src/a.ts`, and absolute paths in the project. */
function indexedPath(projectPath: string, path: string): string {
  const inside = path.startsWith(`${projectPath}/`) ? path.slice(projectPath.length + 1) : path;
  return trimTrailing(inside.replace(/^(?:\.\/+)+/, ""), "/");
}

async function toSearchOutput({ hits, omitted, ...answer }: CodeAnswer, indexedFiles?: () => Promise<number>) {
  const rest = omitted > 0 ? `${omitted} more hits exceed max_tokens. Use a higher limit or filters.` : undefined;
  const none =
    hits.length === 0 && (await indexedFiles?.()) === 0
      ? "Nothing is indexed in this project yet. Run code_index (cairn code index)."
      : undefined;
  return {
    ...answer,
    results: hits.map(({ name, found: { definition, keyword, semantic }, ...hit }) => ({
      ...hit,
      symbol: name,
      found: { definition, keyword: keyword?.rank, semantic: semantic?.rank },
    })),
    ...matchNote({ match: answer.match, hits, note: none ?? rest }),
  };
}

/** Returns the whole lines that fit, at least one, with a note on how to continue. */
function fitContexts(contexts: readonly CodeContext[], maxTokens: number) {
  let budget = maxTokens;
  const fitting: CodeContext[] = [];
  for (const context of contexts) {
    const lines = context.text.split("\n");
    const whole = withinBudget(lines, Math.max(1, budget), (line) => estimateTokens(`${line}\n`) + 2);
    if (fitting.length > 0 && whole.length < lines.length)
      return {
        contexts: fitting,
        note: `${contexts.length - fitting.length} more definitions exceed max_tokens. Use a glob or a higher max_tokens.`,
      };
    const endLine = context.startLine + whole.length - 1;
    fitting.push({ ...context, endLine, text: whole.join("\n") });
    if (whole.length < lines.length)
      return {
        contexts: fitting,
        note: `Cut at line ${endLine} of ${context.endLine}. Continue with path ${context.path} and start_line ${endLine + 1}.`,
      };
    budget -= lines.reduce((sum, line) => sum + estimateTokens(`${line}\n`) + 2, 0);
  }
  return { contexts: fitting };
}
