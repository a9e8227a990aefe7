import { RequestTooLarge } from "./call.ts";

export interface BatchLimits {
  readonly texts: number;
  readonly tokens: number;
}

/** Cuts texts into requests that keep both limits, in order. A text beyond the token limit goes alone. */
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

/** Asks for a batch; one that turns out too large for the provider is halved until it fits. */
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
