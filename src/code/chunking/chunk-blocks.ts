import type { CodeKind } from "../../model/code-chunk.ts";
import type { Lines } from "./lines.ts";
import type { Block, BlockDefinition } from "./outline.ts";

/** A run of whole lines that will be one chunk, and the definition it is or belongs to. */
export interface Span {
  readonly startLine: number;
  readonly endLine: number;
  readonly definition: BlockDefinition | undefined;
}

/**
 * A definition of at least this many tokens is a chunk of its own; smaller ones share. Of 24, 48, 64 and 80, 48 answers the questions
 * of `bench -- code-recall` best, and there is a sixth less to embed and to store than with 24.
 */
const OWN_TOKENS = 48;
/** Tokens from which a single value is a chunk of its own: values are looked up less than functions and types. */
const OWN_VALUE_TOKENS = 80;
const VALUES: ReadonlySet<CodeKind> = new Set(["constant", "variable", "field", "macro", "key"]);
/** Tokens below which loose lines are merged with a neighbour: they say too little to be found. */
const TINY_TOKENS = 24;

/**
 * Cuts a file into spans that hold every line once, in order. What the syntax holds together stays together up to the
 * budget; above it the block is opened and its parts are packed instead, down to single lines.
 */
export function chunkBlocks(lines: Lines, root: Block, budgetTokens: number): Span[] {
  if (lines.count === 0) return [];
  const pieces = openBlocks({ lines, budget: budgetTokens }, [root], 1, lines.count, undefined);
  return pack(pieces, { lines, budget: budgetTokens }, undefined).map(({ startLine, endLine, ...piece }) => ({
    startLine,
    endLine,
    definition: definitionOf(piece, undefined),
  }));
}

interface Context {
  readonly lines: Lines;
  readonly budget: number;
}

interface Piece {
  startLine: number;
  endLine: number;
  /** The different definitions in it, and whether it also holds lines of none of them. */
  definitions: readonly BlockDefinition[];
  plain: boolean;
  /** Takes no part in merging with equals. */
  own: boolean;
}

/** The parts of these blocks over the lines `from` to `to`, without gaps. */
function openBlocks(context: Context, blocks: readonly Block[], from: number, to: number, owner: BlockDefinition | undefined): Piece[] {
  const groups = withLeads(
    context.lines,
    groupByLine(
      blocks.flatMap((block) => block.children),
      from,
      to,
    ),
  );
  if (groups.length === 0) return splitLines(context, from, to, owner);

  const pieces: Piece[] = [];
  const first = groups[0]!.startLine;
  if (first > from) pieces.push(...splitLines(context, from, first - 1, owner));
  for (const [index, group] of groups.entries()) {
    // Lines between two groups, and the closing ones after the last, belong to the group before them.
    const end = index + 1 < groups.length ? groups[index + 1]!.startLine - 1 : to;
    pieces.push(...piecesOf(context, group, end, owner));
  }
  return pieces;
}

function piecesOf(context: Context, group: Group, endLine: number, owner: BlockDefinition | undefined): Piece[] {
  const { startLine, blocks } = group;
  const defined = blocks.map((block) => block.definition).filter((definition) => definition !== undefined);
  const tokens = context.lines.tokens(startLine, endLine);
  if (tokens <= context.budget && !blocks.some((block) => block.open)) {
    const [only, ...more] = defined;
    const own = only !== undefined && more.length === 0 && tokens >= (VALUES.has(only.kind) ? OWN_VALUE_TOKENS : OWN_TOKENS);
    return [{ startLine, endLine, definitions: defined, plain: defined.length === 0, own }];
  }
  const inside = defined.length === 1 ? defined[0] : owner;
  const pieces = openBlocks(context, blocks, startLine, endLine, inside);
  if (inside === owner) return pieces;
  // What was packed inside a definition belongs to it, and does not merge with its neighbours outside.
  return pack(pieces, context, inside).map((piece) => {
    const definition = definitionOf(piece, inside);
    return { ...piece, definitions: definition ? [definition] : [], plain: !definition, own: true };
  });
}

interface Group {
  startLine: number;
  endLine: number;
  blocks: Block[];
}

/** Blocks that share a line cannot be parted: they form one group. */
function groupByLine(blocks: readonly Block[], from: number, to: number): Group[] {
  const groups: Group[] = [];
  for (const block of blocks) {
    const startLine = Math.max(block.startLine, from);
    const endLine = Math.min(block.endLine, to);
    if (startLine > endLine) continue;
    const last = groups[groups.length - 1];
    if (last && startLine <= last.endLine) {
      last.endLine = Math.max(last.endLine, endLine);
      last.blocks.push(block);
    } else groups.push({ startLine, endLine, blocks: [block] });
  }
  return groups;
}

/** Joins comments, decorators and attributes to what follows them without a blank line between. */
function withLeads(lines: Lines, groups: readonly Group[]): Group[] {
  const joined: Group[] = [];
  let lead: Group | undefined;
  for (const group of groups) {
    const touches = lead !== undefined && !hasBlank(lines, lead.endLine + 1, group.startLine - 1);
    if (lead && !touches) {
      joined.push(lead);
      lead = undefined;
    }
    const current: Group = lead ? { startLine: lead.startLine, endLine: group.endLine, blocks: [...lead.blocks, ...group.blocks] } : group;
    if (group.blocks.every((block) => block.leads)) lead = current;
    else {
      joined.push(current);
      lead = undefined;
    }
  }
  if (lead) joined.push(lead);
  return joined;
}

function hasBlank(lines: Lines, from: number, to: number): boolean {
  for (let line = from; line <= to; line++) if (lines.isBlank(line)) return true;
  return false;
}

/** The last resort: as many lines as fit. A single line above the budget stays whole. */
function splitLines({ lines, budget }: Context, from: number, to: number, owner: BlockDefinition | undefined): Piece[] {
  const pieces: Piece[] = [];
  let startLine = from;
  for (let line = from; line <= to; line++) {
    if (line < to && lines.tokens(startLine, line + 1) <= budget) continue;
    pieces.push({ startLine, endLine: line, definitions: owner ? [owner] : [], plain: true, own: false });
    startLine = line + 1;
  }
  return pieces;
}

/** Merges small neighbours, then merges loose lines with the next piece, or the previous one. */
function pack(pieces: readonly Piece[], { lines, budget }: Context, owner: BlockDefinition | undefined): Piece[] {
  const fits = (a: Piece, b: Piece): boolean => lines.tokens(a.startLine, b.endLine) <= budget;
  const packed: Piece[] = [];
  for (const piece of pieces) {
    const last = packed[packed.length - 1];
    if (last && !last.own && !piece.own && fits(last, piece)) packed[packed.length - 1] = join(last, piece, owner);
    else packed.push(piece);
  }

  const isTiny = (piece: Piece): boolean =>
    lines.tokens(piece.startLine, piece.endLine) < TINY_TOKENS && piece.definitions.every((definition) => definition === owner);
  for (let index = 0; index < packed.length; index++) {
    const piece = packed[index]!;
    if (!isTiny(piece)) continue;
    const next = packed[index + 1];
    const previous = packed[index - 1];
    if (next && fits(piece, next)) {
      packed.splice(index, 2, carry(piece, next));
      index--;
    } else if (previous && fits(previous, piece)) {
      packed.splice(index - 1, 2, carry(piece, previous));
      index--;
    }
  }
  return packed;
}

function join(a: Piece, b: Piece, owner: BlockDefinition | undefined): Piece {
  const definitions = [...new Set([...a.definitions, ...b.definitions])].filter((definition) => definition !== owner);
  return { startLine: a.startLine, endLine: b.endLine, definitions, plain: a.plain || b.plain, own: false };
}

/** Merges a tiny piece into a larger one, which keeps its identity. */
function carry(tiny: Piece, host: Piece): Piece {
  return { ...host, startLine: Math.min(tiny.startLine, host.startLine), endLine: Math.max(tiny.endLine, host.endLine) };
}

/** One definition names the piece; several, or one beside lines of the enclosing definition, leave it to the enclosing one. */
function definitionOf(piece: Pick<Piece, "definitions" | "plain">, owner: BlockDefinition | undefined): BlockDefinition | undefined {
  const [only, ...more] = piece.definitions;
  return only && more.length === 0 && (!piece.plain || !owner || only === owner) ? only : owner;
}
