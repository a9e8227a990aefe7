import type { CodeKind, SymbolDefinition } from "../../model/code-chunk.ts";

type Definition = Omit<SymbolDefinition, "role">;

/** Kinds of definitions that contain code. A field or a key is a part of such a definition. */
const CONTAINERS: ReadonlySet<CodeKind> = new Set([
  ...(["function", "method", "class", "struct", "interface", "enum", "module", "implementation", "macro"] as const),
  ...(["constant", "variable", "type", "trigger", "view"] as const),
]);

/** Returns the innermost definition whose lines contain this one. Of two that start together, the later one is inside. */
export function enclosingDefinition(definitions: readonly Definition[], line: number): Definition | undefined {
  let innermost: Definition | undefined;
  for (const definition of definitions) {
    if (!CONTAINERS.has(definition.kind) || definition.line > line || line > definition.endLine) continue;
    if (!innermost || definition.endLine - definition.line <= innermost.endLine - innermost.line) innermost = definition;
  }
  return innermost;
}

/** Languages that call without parentheses: any use of a name may be a call. */
const WITHOUT_PARENTHESES: ReadonlySet<string> = new Set(["ruby", "bash", "haskell", "elixir", "sql", "perl"]);
/** Languages whose calls may end with a block or a literal instead of parentheses. */
const WITH_BLOCKS: ReadonlySet<string> = new Set(["kotlin", "swift", "lua", "groovy"]);

/** Returns whether the name at a column is called: arguments, a macro, a template or a block follow. */
export function isCall(
  { text, column, language }: { readonly text: string; readonly column: number; readonly language: string },
  name: string,
): boolean {
  if (WITHOUT_PARENTHESES.has(language)) return true;
  const rest = text.slice(column - 1 + name.length, column - 1 + name.length + 200);
  if (WITH_BLOCKS.has(language) && /^\s*[{"'[]/.test(rest)) return true;
  return /^\s*(?:\?\.)?(?:!?\(|!?\[(?=[^\]]*\]\()|!\{|`|::<|<[^()=;]{0,100}>\s*\()/.test(rest);
}
