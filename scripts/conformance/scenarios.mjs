/** How many scenarios each revision requires of a server. A suite that ran fewer has not tested the server. */
export const REQUIRED = { "2026-07-28": 37, "2025-11-25": 30 };

/**
 * Scenarios that use no fixture of the suite, such as its tool test_simple_text: they run against the product itself. All other
 * scenarios call fixtures, or need a capability that Cairn does not declare (logging, resource subscriptions).
 */
export const WITHOUT_FIXTURE = {
  "2026-07-28": [
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "sep-2164-resource-not-found",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
    "input-required-result-unsupported-methods",
    "http-header-validation",
  ],
  "2025-11-25": [
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
    "server-session-lifecycle",
  ],
};

/** Reads the summary that the suite prints: each scenario with its result, and whether the revision requires it. */
export function readSummary(output) {
  const summary = output.slice(output.indexOf("=== SUMMARY ==="));
  const unscored = new Set([...summary.matchAll(/^ {2}[✓✗] (\S+) \(/gmu)].map(([, name]) => name));
  return [...summary.matchAll(/^([✓✗]) (\S+): (\d+) passed/gmu)].map(([, mark, name, checks]) => ({
    name,
    passed: mark === "✓" && checks !== "0",
    required: !unscored.has(name),
  }));
}
