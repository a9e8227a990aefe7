import type { z } from "zod";

/** What is wrong with one field, in words for whoever sent it. */
export function problemOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "unrecognized_keys":
      return `unknown field ${issue.keys.map((key) => JSON.stringify(key.slice(0, 100))).join(", ")}`;
    case "invalid_key":
      return `as a name, ${issue.issues.map(({ message }) => message).join("; ")}`;
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_big":
      return isOwn(issue, "Too big") ? issue.message : `must be at most ${issue.maximum}`;
    case "too_small":
      return isOwn(issue, "Too small") ? issue.message : `must be at least ${issue.minimum}`;
    case "invalid_type":
      return issue.message.endsWith("received undefined") ? "is missing" : issue.message.replace(/^Invalid input: /, "");
    case "invalid_format":
      return issue.format === "datetime" ? "must be a time such as 2026-01-31T00:00:00Z" : issue.message;
    default:
      return issue.message;
  }
}

/** Whether a schema has words of its own for it, or the library's. */
function isOwn({ message, origin }: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall, general: string): boolean {
  return (origin !== "number" && origin !== "int") || !message.startsWith(general);
}
