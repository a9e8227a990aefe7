import type { CodeKind, SymbolEntry } from "../../model/code-chunk.ts";
import type { DefinitionRule, Grammar } from "./grammar.ts";
import { field } from "./grammar.ts";
import type { Lines } from "./lines.ts";
import type { Block, BlockDefinition, Outline } from "./outline.ts";
import type { NodeTypes, SyntaxCursor } from "./syntax.ts";

/** Limit of nested blocks: real code stays far below, and recursion over blocks stays safe. */
const MAX_BLOCK_DEPTH = 120;
/** Limit of nested definitions: deeper nesting is generated code, and its outer names suffice. */
const MAX_PARENTS = 12;
/** Limit of a name in characters: longer ones are data that looks like a name. */
const MAX_NAME_CHARS = 200;
/** Names for the current object, and the blank identifier: they would be a tenth of all references, and nobody looks them up. */
const NO_NAMES: ReadonlySet<string> = new Set(["self", "cls", "this", "_"]);

/**
 * One pass over a syntax tree: blocks for the chunker, exact symbols for the index. Every question to the cursor costs more
 * than all the rest here, so none is asked whose answer is not needed.
 */
export function readOutline(
  cursor: SyntaxCursor,
  types: NodeTypes,
  grammar: Grammar,
  lines: Lines,
  atEachNode: () => void = () => {},
): Outline {
  const actions = actionsByTypeId(types, grammar);
  const symbols: SymbolEntry[] = [];
  /** Where names of definitions start and end: the nodes there must not count as references. */
  const defined = new Map<number, number>();
  let definedTo = 0;
  const root: Block = { startLine: 1, endLine: lines.count, open: true, children: [] };
  const path: Frame[] = [];
  const scopes: Scope[] = [];

  const enter = (): Frame => {
    atEachNode();
    const action = actions[cursor.nodeTypeId] ?? NO_ACTION;
    const parent = path[path.length - 1];
    if (!parent) return { block: root, scopes: 0, wrapper: undefined, opens: false, isLeaf: false };
    const frame: Frame = {
      block: undefined,
      scopes: scopes.length,
      wrapper: action.wrapper ? parent.wrapper : undefined,
      opens: action.open,
      isLeaf: !action.named,
    };
    // Only a parent of several lines can be cut between its children.
    const wantsBlock = parent.block !== undefined && action.named;
    if (!wantsBlock && !action.identifier && !action.rule) return frame;

    const { startIndex, endIndex } = cursor;
    if (action.identifier) refer(startIndex, endIndex);
    let block: Block | undefined;
    if (wantsBlock && endIndex > startIndex) {
      const startLine = lines.lineAt(startIndex);
      const endLine = Math.max(startLine, lines.lineAt(endIndex - 1));
      block = { startLine, endLine, leads: action.leads, open: action.open || (parent.opens && !action.rule), children: [] };
      parent.block!.children.push(block);
      if (endLine > startLine && path.length < MAX_BLOCK_DEPTH) frame.block = block;
      if (action.wrapper) frame.wrapper ??= { block, found: 0 };
    }
    if (action.rule) define(action.rule, block, parent.wrapper);
    return frame;
  };

  const refer = (startIndex: number, endIndex: number): void => {
    // A name can have parts, as in `namespace Shop.Stock`; definitions come before their names, so the end is known by then.
    definedTo = Math.max(definedTo, defined.get(startIndex) ?? 0);
    if (startIndex < definedTo || endIndex - startIndex > MAX_NAME_CHARS || endIndex === startIndex) return;
    const name = lines.content.slice(startIndex, endIndex);
    if (NO_NAMES.has(name) || grammar.isName?.(name) === false) return;
    const line = lines.lineAt(startIndex);
    symbols.push({ role: "reference", name, line, column: startIndex - lines.startOf(line) + 1 });
  };

  const define = (rule: DefinitionRule, block: Block | undefined, wrapper: Wrapper | undefined): void => {
    const around = scopes[scopes.length - 1];
    if (rule.outer === true && around?.inFunction) return;
    if (rule.maxDepth !== undefined && scopes.length >= rule.maxDepth) return;
    const node = cursor.currentNode;
    const declared = typeof rule.kind === "function" ? rule.kind(node) : rule.kind;
    if (!declared || (rule.outer === "values" && around?.inFunction && declared !== "function" && declared !== "class")) return;
    const kind = asMember(declared, around?.kind);
    const names = (rule.names ? rule.names(node) : field(node, "name")).filter((name) => name.endIndex - name.startIndex <= MAX_NAME_CHARS);
    const parents = [...(around?.names ?? []), ...(rule.within?.(node) ?? [])].slice(0, MAX_PARENTS);
    const lastLine = names.length > 0 ? lines.lineAt(Math.max(node.startIndex, node.endIndex - 1)) : 0;
    for (const name of names) {
      const line = lines.lineAt(name.startIndex);
      defined.set(name.startIndex, name.endIndex);
      symbols.push({
        role: "definition",
        name: name.text,
        kind,
        line,
        column: name.startIndex - lines.startOf(line) + 1,
        endLine: Math.max(line, lastLine),
        parents,
      });
    }
    const label = (rule.label ? rule.label(node) : names[0]?.text)?.slice(0, MAX_NAME_CHARS);
    if (!label) return;
    name(block, { kind, name: label, parents }, wrapper);
    const inFunction = around?.inFunction === true || kind === "function" || kind === "method";
    scopes.push({ kind, inFunction, names: rule.flat ? parents : [...parents, label] });
  };

  walk(cursor, path, scopes, enter);
  return { root, symbols };
}

interface Frame {
  /** Set where the node spans lines, so that its children become blocks. */
  block: Block | undefined;
  /** How many scopes were open around the node. */
  readonly scopes: number;
  wrapper: Wrapper | undefined;
  /** The node is opened whatever its size, and so is a body in it. */
  readonly opens: boolean;
  /** Punctuation and keywords have nothing inside. */
  readonly isLeaf: boolean;
}

interface Wrapper {
  readonly block: Block;
  found: number;
}

interface Scope {
  readonly kind: CodeKind;
  readonly inFunction: boolean;
  readonly names: readonly string[];
}

interface Action {
  readonly named: boolean;
  readonly rule?: DefinitionRule | undefined;
  readonly identifier: boolean;
  readonly leads: boolean;
  readonly wrapper: boolean;
  readonly open: boolean;
}

const NO_ACTION: Action = { named: true, identifier: false, leads: false, wrapper: false, open: false };

/** Visits every node, parents first. A loop, because generated code nests deeper than the stack. */
function walk(cursor: SyntaxCursor, path: Frame[], scopes: Scope[], enter: () => Frame): void {
  for (;;) {
    const frame = enter();
    path.push(frame);
    if (!frame.isLeaf && cursor.gotoFirstChild()) continue;
    for (;;) {
      const left = path.pop()!;
      if (scopes.length > left.scopes) scopes.length = left.scopes;
      if (cursor.gotoNextSibling()) break;
      if (!cursor.gotoParent()) return;
    }
  }
}

/** Made once for each grammar that is loaded: it has hundreds of node types, and most files are small. */
function actionsByTypeId(language: NodeTypes, grammar: Grammar): readonly Action[] {
  let actions = knownActions.get(language);
  if (!actions) {
    actions = language.types.map((type, typeId) => ({
      named: language.nodeTypeIsNamed(typeId),
      rule: Object.hasOwn(grammar.definitions, type) ? grammar.definitions[type] : undefined,
      identifier: grammar.identifiers.includes(type),
      leads: grammar.leads.includes(type),
      wrapper: grammar.wrappers?.includes(type) ?? false,
      open: grammar.open?.includes(type) ?? false,
    }));
    knownActions.set(language, actions);
  }
  return actions;
}

const knownActions = new WeakMap<NodeTypes, readonly Action[]>();

/** The outermost wrapper stands for the one definition in it; with a second one, each stands for itself again. */
function name(block: Block | undefined, definition: BlockDefinition, wrapper: Wrapper | undefined): void {
  if (wrapper) {
    wrapper.found++;
    if (wrapper.found === 1) {
      wrapper.block.definition = definition;
      return;
    }
    delete wrapper.block.definition;
  }
  if (block) block.definition = definition;
}

const CLASS_LIKE: ReadonlySet<CodeKind> = new Set(["class", "struct", "interface", "enum", "implementation"]);

/** A function in a class is a method, a variable in it a field. */
function asMember(kind: CodeKind, around: CodeKind | undefined): CodeKind {
  if (!around || !CLASS_LIKE.has(around)) return kind;
  return kind === "function" ? "method" : kind === "variable" || kind === "constant" ? "field" : kind;
}
