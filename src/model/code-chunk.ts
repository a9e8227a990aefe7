/** What a piece of a file is. Structure comes from the syntax; `text` is everything without one. */
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

/** A run of whole lines of one file. Together the chunks of a file hold every line exactly once, in order. */
export interface Chunk {
  /** From 0, in file order. */
  readonly index: number;
  readonly kind: CodeKind;
  /** The definition this chunk is, or is a part of. Absent where several small ones share a chunk. */
  readonly name?: string;
  /** The names around it, outermost first. */
  readonly parents: readonly string[];
  /** Names defined inside it, in order, at most 20: what a shared chunk is about. */
  readonly defines: readonly string[];
  /** From 1, inclusive. */
  readonly startLine: number;
  readonly endLine: number;
  readonly text: string;
}

/** A name that the syntax says is defined here. Columns count from 1 in UTF-16 code units. */
export interface SymbolDefinition {
  readonly role: "definition";
  readonly name: string;
  readonly kind: CodeKind;
  readonly line: number;
  readonly column: number;
  readonly parents: readonly string[];
}

/** A name that the syntax says is used here. Words in strings and comments are not. */
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
  /** Why a file whose language is known was cut by lines after all. */
  readonly notice?: string;
}
