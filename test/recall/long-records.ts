/** Topics that share no word: a test embedder gives each another direction. */
export const TOPICS = ["orchard", "harbour", "thunder", "violin", "glacier", "lantern", "saffron", "compass"];

/** Returns a description with one paragraph per topic, each as long as a piece. */
export function longDescription(topics: readonly string[] = TOPICS): string {
  return topics.map((topic) => `${`${topic} `.repeat(Math.floor(470 / (topic.length + 1))).trim()}.`).join("\n\n");
}
