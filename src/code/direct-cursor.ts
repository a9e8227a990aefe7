import type { TreeCursor } from "web-tree-sitter";
import type { SyntaxCursor, SyntaxNode } from "./chunking/syntax.ts";

/**
 * The functions of the parser's runtime that a walk calls. Each finds the cursor in the transfer buffer and leaves it there. The runtime
 * adds them to the options with which it was started.
 */
export interface CursorFunctions {
  /** Returns the address of the transfer buffer. */
  _ts_init(): number;
  _ts_tree_cursor_goto_first_child_wasm(tree: number): number;
  _ts_tree_cursor_goto_next_sibling_wasm(tree: number): number;
  _ts_tree_cursor_goto_parent_wasm(tree: number): number;
  _ts_tree_cursor_current_node_type_id_wasm(tree: number): number;
  _ts_tree_cursor_start_index_wasm(tree: number): number;
  _ts_tree_cursor_end_index_wasm(tree: number): number;
}

/** A cursor is four numbers, in the buffer and in the object of web-tree-sitter. */
const CURSOR_INTS = 4;
type CursorNumbers = Record<number, number>;

/**
 * A cursor that calls the runtime directly. The cursor of web-tree-sitter copies itself into the transfer buffer and back for every call,
 * which takes as long as the call. This one is copied only around `currentNode`: the functions of a node use the same buffer. A node must
 * therefore not be used after the cursor has moved on.
 */
export class DirectCursor implements SyntaxCursor {
  readonly #cursor: TreeCursor;
  readonly #calls: CursorFunctions;
  readonly #memory: { readonly buffer: ArrayBuffer };
  readonly #tree: number;
  readonly #at: number;
  #isInBuffer = false;

  constructor(cursor: TreeCursor, calls: CursorFunctions, memory: { readonly buffer: ArrayBuffer }) {
    this.#cursor = cursor;
    this.#calls = calls;
    this.#memory = memory;
    this.#tree = (cursor as unknown as { readonly tree: CursorNumbers }).tree[0]!;
    this.#at = calls._ts_init();
  }

  get nodeTypeId(): number {
    if (!this.#isInBuffer) this.#load();
    return this.#calls._ts_tree_cursor_current_node_type_id_wasm(this.#tree);
  }

  get startIndex(): number {
    if (!this.#isInBuffer) this.#load();
    return this.#calls._ts_tree_cursor_start_index_wasm(this.#tree);
  }

  get endIndex(): number {
    if (!this.#isInBuffer) this.#load();
    return this.#calls._ts_tree_cursor_end_index_wasm(this.#tree);
  }

  get currentNode(): SyntaxNode {
    this.release();
    return this.#cursor.currentNode;
  }

  gotoFirstChild(): boolean {
    if (!this.#isInBuffer) this.#load();
    return this.#calls._ts_tree_cursor_goto_first_child_wasm(this.#tree) === 1;
  }

  gotoNextSibling(): boolean {
    if (!this.#isInBuffer) this.#load();
    return this.#calls._ts_tree_cursor_goto_next_sibling_wasm(this.#tree) === 1;
  }

  gotoParent(): boolean {
    if (!this.#isInBuffer) this.#load();
    return this.#calls._ts_tree_cursor_goto_parent_wasm(this.#tree) === 1;
  }

  /** Returns the position to the cursor of web-tree-sitter, which can then be used or deleted. */
  release(): void {
    if (!this.#isInBuffer) return;
    const buffer = this.#buffer();
    for (let place = 0; place < CURSOR_INTS; place++) (this.#cursor as unknown as CursorNumbers)[place] = buffer[place]!;
    this.#isInBuffer = false;
  }

  #load(): void {
    const buffer = this.#buffer();
    for (let place = 0; place < CURSOR_INTS; place++) buffer[place] = (this.#cursor as unknown as CursorNumbers)[place]!;
    this.#isInBuffer = true;
  }

  /** Returns the transfer buffer as it is now: growing memory replaces its buffer. */
  #buffer(): Int32Array {
    return new Int32Array(this.#memory.buffer, this.#at, CURSOR_INTS);
  }
}
