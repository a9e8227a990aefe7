import type { CodeKind } from "../../model/code-chunk.ts";
import type { SyntaxNode } from "./syntax.ts";

/** How one type of node defines something. */
export interface DefinitionRule {
  readonly kind: CodeKind | ((node: SyntaxNode) => CodeKind | undefined);
  /** The nodes that carry the defined names; the field `name` where absent. None means: nothing is defined here. */
  readonly names?: (node: SyntaxNode) => readonly SyntaxNode[];
  /** What a chunk is called, where that is not the first name. Without one the node is no chunk of its own. */
  readonly label?: (node: SyntaxNode) => string | undefined;
  /** Parents that the source names instead of nesting in them, as in `func (s *Server) Close()`. */
  readonly within?: (node: SyntaxNode) => readonly string[];
  /** Counts only outside of functions: local variables are no definitions to search for. With `values`, local functions are. */
  readonly outer?: true | "values";
  /** Names inside are not «in» it. */
  readonly flat?: boolean;
  /** Counts only under fewer than this many enclosing keys: deep data defines nothing. */
  readonly maxDepth?: number;
}

/** What the outline must know about a language. All strings are node types of its tree-sitter grammar. */
export interface Grammar {
  readonly definitions: Readonly<Record<string, DefinitionRule>>;
  /** Nodes whose text is a name. */
  readonly identifiers: readonly string[];
  /** Which of those texts are names; all of them where absent. */
  readonly isName?: (text: string) => boolean;
  /** Nodes that belong to what follows them. */
  readonly leads: readonly string[];
  /** Nodes around exactly one definition that are part of it, as `export` is. */
  readonly wrappers?: readonly string[];
  /** Nodes that are opened, with their body, even if they would fit in one chunk. */
  readonly open?: readonly string[];
}

export function nodes(list: readonly (SyntaxNode | null)[]): SyntaxNode[] {
  return list.filter((node) => node !== null);
}

export function field(node: SyntaxNode, name: string): SyntaxNode[] {
  const child = node.childForFieldName(name);
  return child ? [child] : [];
}

export function childOfType(node: SyntaxNode, ...types: readonly string[]): SyntaxNode | undefined {
  return nodes(node.namedChildren).find((child) => types.includes(child.type));
}

/** All nodes of these types at or below `node`, without going into the ones found. */
export function within(node: SyntaxNode, types: readonly string[], depth = 8): SyntaxNode[] {
  if (types.includes(node.type)) return [node];
  return depth === 0 ? [] : nodes(node.namedChildren).flatMap((child) => within(child, types, depth - 1));
}
