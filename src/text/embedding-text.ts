/** What is embedded of a checkpoint: the summary carries the key ideas, the description the rest. Context pairs are too noisy. */
export function checkpointText({ summary, description }: { readonly summary: string; readonly description: string }): string {
  return description ? `${summary}\n\n${description}` : summary;
}
