/** As much of a syntax tree as the outline needs; web-tree-sitter's nodes and cursors fit it. */
export interface SyntaxNode {
  readonly type: string;
  readonly text: string;
  readonly startIndex: number;
  readonly endIndex: number;
  readonly parent: SyntaxNode | null;
  readonly namedChildren: readonly (SyntaxNode | null)[];
  childForFieldName(field: string): SyntaxNode | null;
  childrenForFieldName(field: string): readonly (SyntaxNode | null)[];
}

/** The node types of a grammar by their number, and which of them are more than punctuation and keywords. */
export interface NodeTypes {
  readonly types: readonly string[];
  nodeTypeIsNamed(typeId: number): boolean;
}

export interface SyntaxCursor {
  readonly nodeTypeId: number;
  readonly startIndex: number;
  readonly endIndex: number;
  readonly currentNode: SyntaxNode;
  gotoFirstChild(): boolean;
  gotoNextSibling(): boolean;
  gotoParent(): boolean;
}
