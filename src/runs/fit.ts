import { estimateTokens, recordTokens, withinBudget } from "../text/estimate-tokens.ts";
import type { RunDetails } from "./service.ts";

/** Fits a run into a budget: the state is all or nothing, because half of a JSON text is none, and the newest steps are kept. */
export function fitRun(found: RunDetails, tokens: number): RunDetails & { readonly note?: string } {
  const stateTokens = found.stateJson === undefined ? 0 : estimateTokens(JSON.stringify(found.stateJson));
  const budget = tokens - recordTokens(found.run);
  const omitted = stateTokens > budget;
  const newest = withinBudget([...found.steps].reverse(), budget - (omitted ? NOTE_TOKENS : stateTokens), recordTokens);
  return {
    ...found,
    steps: newest.reverse(),
    truncated: found.truncated || newest.length < found.steps.length,
    stateJson: omitted ? undefined : found.stateJson,
    ...(omitted && { note: `The state has about ${stateTokens} tokens. Use a larger max_tokens to read it.` }),
  };
}

const NOTE_TOKENS = 30;
