import { RequestTooLarge } from "./call.ts";

export interface BatchLimits {
  readonly texts: number;
  readonly tokens: number;
}

/** Splits texts into requests within both limits, in order. A text above the token limit gets a request of its own. */
export function batches(costs: readonly number[], limits: BatchLimits): { readonly start: number; readonly end: number }[] {
  const cut: { start: number; end: number }[] = [];
  let start = 0;
  let tokens = 0;
  for (const [index, cost] of costs.entries()) {
    if (index > start && (index - start >= limits.texts || tokens + cost > limits.tokens)) {
      cut.push({ start, end: index });
      start = index;
      tokens = 0;
    }
    tokens += cost;
  }
  if (start < costs.length) cut.push({ start, end: costs.length });
  return cut;
}

/** Sends a batch, and halves it while the provider reports that it is too large. */
export async function askHalving<Answer>(
  texts: readonly string[],
  ask: (texts: readonly string[]) => Promise<Answer[]>,
): Promise<Answer[]> {
  try {
    return await ask(texts);
  } catch (error) {
    if (!(error instanceof RequestTooLarge) || texts.length < 2) throw error;
    const middle = Math.ceil(texts.length / 2);
    return [...(await askHalving(texts.slice(0, middle), ask)), ...(await askHalving(texts.slice(middle), ask))];
  }
}
