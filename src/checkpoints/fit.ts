import type { Checkpoint } from "../model/checkpoint.ts";
import { cutText, estimateTokens, withinBudget } from "../text/budget.ts";

export interface Fitted {
  readonly shown: readonly Checkpoint[];
  /** How many were shortened. */
  readonly cut: number;
  /** How many from the end did not fit at all. */
  readonly left: number;
}

/** Checkpoints as far as they fit: long descriptions are cut to a fair share first, and only then are records left out from the end. */
export function fitCheckpoints(checkpoints: readonly Checkpoint[], tokens: number): Fitted {
  if (sum(checkpoints) <= tokens) return { shown: checkpoints, cut: 0, left: 0 };
  const share = Math.max(SMALLEST_SHARE, Math.floor(tokens / Math.max(1, checkpoints.length)));
  const shortened = checkpoints.map((checkpoint) => shorten(checkpoint, share));
  const shown = withinBudget(shortened, tokens, costOf);
  const cut = shown.filter((checkpoint, index) => checkpoint !== checkpoints[index]).length;
  return { shown, cut, left: checkpoints.length - shown.length };
}

/** A record of fewer tokens says too little to choose by. */
const SMALLEST_SHARE = 150;

const costOf = (checkpoint: Checkpoint) => estimateTokens(JSON.stringify(checkpoint));
const sum = (checkpoints: readonly Checkpoint[]) => checkpoints.reduce((total, checkpoint) => total + costOf(checkpoint), 0);

function shorten(checkpoint: Checkpoint, tokens: number): Checkpoint {
  if (costOf(checkpoint) <= tokens) return checkpoint;
  const bare = { ...checkpoint, description: "", context: {} };
  const room = Math.max(0, tokens - costOf(bare));
  const pairs = Object.entries(checkpoint.context);
  const cost = ([key, value]: readonly [string, string]) => estimateTokens(key + value) + 3;
  const context = Object.fromEntries(room === 0 ? [] : withinBudget(pairs, Math.floor(room / 2), cost));
  const left = room - Object.entries(context).reduce((total, pair) => total + cost(pair), 0);
  const missing = pairs.length - Object.keys(context).length;
  const note = missing > 0 ? `cut, with ${missing} context pairs; get it by its id` : "cut; get it by its id";
  const description =
    checkpoint.description || missing > 0 ? cutText(`${checkpoint.description} `, Math.max(0, left - 15), note).text.trimEnd() : "";
  return { ...bare, description, context };
}
