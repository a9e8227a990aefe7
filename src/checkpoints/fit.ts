import type { Checkpoint } from "../model/checkpoint.ts";
import { cutText, estimateTokens, recordTokens, withinBudget } from "../text/estimate-tokens.ts";
import { type FittedRecords, fitRecords } from "../text/fit-records.ts";

/** Fits checkpoints into a budget: long descriptions and contexts are shortened before a checkpoint is omitted. */
export function fitCheckpoints<Kind extends Checkpoint>(checkpoints: readonly Kind[], tokens: number): FittedRecords<Kind> {
  return fitRecords(checkpoints, tokens, { minShare: 150, shorten });
}

function shorten<Kind extends Checkpoint>(checkpoint: Kind, tokens: number): Kind {
  const bare = { ...checkpoint, description: "", context: {} };
  const budget = Math.max(0, tokens - recordTokens(bare));
  const pairs = Object.entries(checkpoint.context);
  const cost = ([key, value]: readonly [string, string]) => estimateTokens(key + value) + 3;
  const context = Object.fromEntries(budget === 0 ? [] : withinBudget(pairs, Math.floor(budget / 2), cost));
  const rest = budget - Object.entries(context).reduce((total, pair) => total + cost(pair), 0);
  const missing = pairs.length - Object.keys(context).length;
  const note = missing > 0 ? `cut, with ${missing} context pairs; use checkpoint_get` : "cut; use checkpoint_get";
  const description =
    checkpoint.description || missing > 0 ? cutText(`${checkpoint.description} `, Math.max(0, rest - 15), note).text.trimEnd() : "";
  return { ...bare, description, context };
}
