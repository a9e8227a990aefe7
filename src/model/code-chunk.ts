/** The kinds of chunks. `text` is everything without syntactic structure. */
export const CODE_KINDS = [
  "function",
  "method",
  "class",
  "struct",
  "interface",
  "type",
  "enum",
  "module",
  "implementation",
  "constant",
  "variable",
  "field",
  "macro",
  "table",
  "view",
  "index",
  "trigger",
  "section",
  "rule",
  "element",
  "key",
  "text",
] as const;

export type CodeKind = (typeof CODE_KINDS)[number];

/** Consecutive whole lines of one file. The chunks of a file contain every line exactly once, in order. */
export interface Chunk {
  /** From 0, in file order. */
  readonly index: number;
  readonly kind: CodeKind;
  /** The definition that the chunk contains or belongs to. Absent if several small definitions share the chunk. */
  readonly name?: string;
  /** The names of the enclosing definitions, outermost first. */
  readonly parents: readonly string[];
  /** Names defined inside the chunk, in order, at most 20. */
  readonly defines: readonly string[];
  /** From 1, inclusive. */
  readonly startLine: number;
  readonly endLine: number;
  readonly text: string;
}

/** The definition of a name, found by syntax. Columns count from 1 in UTF-16 code units. */
export interface SymbolDefinition {
  readonly role: "definition";
  readonly name: string;
  readonly kind: CodeKind;
  readonly line: number;
  readonly column: number;
  /** The last line of the definition, inclusive. */
  readonly endLine: number;
  readonly parents: readonly string[];
}

/** A reference to a name, found by syntax. Strings and comments do not count. */
export interface SymbolReference {
  readonly role: "reference";
  readonly name: string;
  readonly line: number;
  readonly column: number;
}

export type SymbolEntry = SymbolDefinition | SymbolReference;

export interface ChunkedFile {
  /** `text` where the language is not known. */
  readonly language: string;
  readonly chunks: readonly Chunk[];
  readonly symbols: readonly SymbolEntry[];
  /** Whether the boundaries come from the syntax or only from blank lines. */
  readonly how: "syntax" | "lines";
  /** Why a file of a known language was split by lines. */
  readonly notice?: string;
}
