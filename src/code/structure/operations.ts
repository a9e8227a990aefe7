import { z } from "zod";
import { LIMITS } from "../../model/limits.ts";
import { operation } from "../../operations/operation.ts";
import { ProjectId, text } from "../../operations/schemas.ts";
import { estimateTokens, withinBudget } from "../../text/estimate-tokens.ts";
import { FilterFields, Glob, MaxTokens, readLanguage } from "../wire-schemas.ts";
import { calleesText, callersText, grepText, impactText } from "./answer-text.ts";
import { readSymbolPath } from "./symbol-path.ts";
import { CalleesOutput, CallersOutput, GrepOutput, ImpactOutput } from "./wire-schemas.ts";

const BY_SYNTAX = "By syntax: calls through variables of unknown type, reflection and other repositories are not known.";
const SymbolName = text(LIMITS.symbolChars, 1).describe("bar, Foo.bar or Foo::bar.");
const Limit = z.int().min(1).max(LIMITS.listMax).default(50);
const SHARED = { access: "read", limits: { timeoutMs: LIMITS.searchTimeoutMs }, toolset: "code" } as const;

export const codeCallers = operation({
  name: "code_callers",
  summary: "List the definitions that use a symbol, by syntax.",
  input: z.strictObject({ project_path: ProjectId, symbol: SymbolName, glob: Glob.optional(), limit: Limit, max_tokens: MaxTokens }),
  output: CallersOutput,
  ...SHARED,
  cli: {
    positional: ["symbol"],
    examples: ["cairn code callers retryWithBackoff", "cairn code callers JobQueue.run --glob 'src/**'"],
    text: callersText,
  },
  render: (output) => callersText(output),
  async run(cairn, { projectPath, symbol, glob, limit, maxTokens }) {
    const { callers, definitions, excluded, ownerUnknown, truncated } = await cairn.code.callers({ projectPath, symbol, glob, limit });
    const fitting = withinBudget(callers, maxTokens, costOf);
    return {
      callers: fitting,
      note: notesOf(symbol, definitions, {
        more: truncated || fitting.length < callers.length,
        excluded,
        ownerUnknown,
        found: callers.length,
      }),
    };
  },
});

export const codeCallees = operation({
  name: "code_callees",
  summary: "List the symbols that a definition uses and where they are defined, by syntax.",
  input: z.strictObject({
    project_path: ProjectId,
    symbol: SymbolName,
    glob: Glob.optional().describe("Files with the definition."),
    limit: Limit,
    max_tokens: MaxTokens,
  }),
  output: CalleesOutput,
  ...SHARED,
  cli: { positional: ["symbol"], examples: ["cairn code callees JobQueue.run"], text: calleesText },
  render: (output) => calleesText(output),
  async run(cairn, { projectPath, symbol, glob, limit, maxTokens }) {
    const { definitions, callees, truncated } = await cairn.code.callees({ projectPath, symbol, glob, limit });
    const fitting = withinBudget(callees, maxTokens, costOf);
    const more = truncated || fitting.length < callees.length;
    return { definitions, callees: fitting, note: notesOf(symbol, definitions.length, { more, found: callees.length }) };
  },
});

export const codeImpact = operation({
  name: "code_impact",
  summary: "List what a change of a symbol can affect: callers, their callers, and tests, by syntax.",
  input: z.strictObject({
    project_path: ProjectId,
    symbol: SymbolName,
    depth: z.int().min(1).max(LIMITS.codeImpactDepth).default(3).describe("Steps from the symbol."),
    glob: Glob.optional(),
    limit: Limit,
    max_tokens: MaxTokens,
  }),
  output: ImpactOutput,
  ...SHARED,
  cli: {
    positional: ["symbol"],
    examples: ["cairn code impact parseConfig", "cairn code impact JobQueue.run --depth 2"],
    text: impactText,
  },
  render: (output) => impactText(output),
  async run(cairn, { projectPath, symbol, depth, glob, limit, maxTokens }, { signal }) {
    const found = await cairn.code.impact({ projectPath, symbol, depth, glob, limit }, { signal });
    const fitting = withinBudget(found.affected, maxTokens, costOf);
    const more = found.truncated || fitting.length < found.affected.length;
    return {
      affected: fitting,
      files: new Set(fitting.map(({ path }) => path)).size,
      notFollowed: found.notFollowed,
      note: notesOf(symbol, found.definitions, { more, found: found.affected.length }),
    };
  },
});

export const codeGrep = operation({
  name: "code_grep",
  summary: "Search the indexed lines for a regular expression (RE2) or an exact text.",
  description: "Exact and complete, or the note says what is missing. Matches are within one line.",
  input: z.strictObject({
    project_path: ProjectId,
    pattern: text(LIMITS.patternChars, 1),
    fixed: z.boolean().default(false).describe("pattern is a text, not a regular expression."),
    ignore_case: z.boolean().default(false),
    glob: FilterFields.glob,
    languages: FilterFields.languages,
    changed_since: FilterFields.changed_since,
    context_lines: z.int().min(0).max(LIMITS.codeContextLines).default(0).describe("Lines around each match."),
    limit: z.int().min(1).max(LIMITS.codeMatches).default(50),
    max_tokens: MaxTokens,
  }),
  output: GrepOutput,
  ...SHARED,
  cli: {
    positional: ["pattern"],
    examples: ["cairn code grep 'TODO|FIXME'", "cairn code grep --fixed 'retry(' --glob 'src/**' --context-lines 2"],
    text: grepText,
  },
  render: (output) => grepText(output),
  async run(cairn, { projectPath, maxTokens, limit, languages, ...query }, { signal }) {
    const filter = { ...query, languages: languages?.map(readLanguage) };
    const { matches, complete, reasons, searchedFiles } = await cairn.code.grep({ projectPath, limit, ...filter }, { signal });
    const fitting = withinBudget(matches, maxTokens, (match) => estimateTokens(match.text) + estimateTokens(match.path) + 6);
    const missing = [
      ...reasons,
      ...(fitting.length < matches.length ? [`${matches.length - fitting.length} more matches exceed max_tokens`] : []),
    ];
    return {
      matches: fitting,
      complete: complete && fitting.length === matches.length,
      searchedFiles,
      ...(missing.length > 0 && { note: `Incomplete: ${missing.join("; ")}. Use a glob, a more exact pattern or higher limits.` }),
    };
  },
});

export const codeStructureOperations = [codeCallers, codeCallees, codeImpact, codeGrep];

function costOf(item: object): number {
  return estimateTokens(JSON.stringify(item));
}

function notesOf(
  symbol: string,
  definitions: number,
  {
    more,
    excluded = 0,
    ownerUnknown = false,
    found,
  }: { readonly more: boolean; readonly excluded?: number; readonly ownerUnknown?: boolean; readonly found: number },
): string {
  const { name, owner } = readSymbolPath(symbol);
  return [
    ...(definitions === 0 && found === 0 ? [`No symbol ${JSON.stringify(name)} in the index. Try code_search.`] : []),
    ...(more ? ["There are more. Use a glob, or a higher limit or max_tokens."] : []),
    ...(ownerUnknown ? [`${owner} defines no ${name} in the index, so this is about every ${name}.`] : []),
    ...(excluded > 0 ? [`${excluded} other uses of ${name} have another or an unknown receiver.`] : []),
    ...(owner === undefined && definitions > 1 ? [`${name} has ${definitions} definitions; write Owner.${name} for one of them.`] : []),
    BY_SYNTAX,
  ].join(" ");
}
