import type { z } from "zod";

/** Describes the problem of one field for the caller. */
export function problemOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "unrecognized_keys":
      return unknownFields(issue.keys);
    case "invalid_key":
      return `as a name, ${issue.issues.map(({ message }) => message).join("; ")}`;
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_big":
      return isOwn(issue, "Too big") ? issue.message : `must be at most ${issue.maximum}`;
    case "too_small":
      return isOwn(issue, "Too small") ? issue.message : `must be at least ${issue.minimum}`;
    case "invalid_type":
      return issue.message.endsWith("received undefined") ? "is missing" : typeProblem(issue.expected, issue.message);
    case "invalid_format":
      return issue.format === "datetime" ? "must be a time such as 2026-01-31T00:00:00Z" : issue.message;
    default:
      return issue.message;
  }
}

/** How callers know the types of JSON. */
const TYPES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

function typeProblem(expected: string, message: string): string {
  const type = TYPES[expected];
  return type === undefined ? message.replace(/^Invalid input: /, "") : `must be ${type}`;
}

/** Unknown fields that an error names; the others are counted. */
const NAMED_FIELDS = 10;

/** Names the first unknown fields only: an error must not be as long as the input that caused it. */
function unknownFields(keys: readonly string[]): string {
  const names = keys.slice(0, NAMED_FIELDS).map((key) => JSON.stringify(key.slice(0, 100)));
  const more = keys.length - names.length;
  return `unknown field ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Whether the schema has its own message instead of zod's. */
function isOwn({ message, origin }: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall, general: string): boolean {
  return (origin !== "number" && origin !== "int") || !message.startsWith(general);
}
