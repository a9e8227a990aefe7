import type { CodeKind, SymbolEntry } from "../../model/code-chunk.ts";

/** The definition of a block, as far as chunks need it. */
export interface BlockDefinition {
  readonly kind: CodeKind;
  readonly name: string;
  readonly parents: readonly string[];
}

/** A run of lines that the syntax holds together. Blocks of one parent are in order and may share a line. */
export interface Block {
  readonly startLine: number;
  endLine: number;
  definition?: BlockDefinition;
  /** Comments, decorators and attributes: they belong to what follows them. */
  readonly leads?: boolean;
  /** Files, namespaces and the like are opened even if they would fit in one chunk. */
  readonly open?: boolean;
  readonly children: Block[];
}

/** The structure of one file, as plain data: what the chunker needs of a syntax tree. */
export interface Outline {
  readonly root: Block;
  readonly symbols: readonly SymbolEntry[];
}
