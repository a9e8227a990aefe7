/**
 * What a flag means where the schema of its field says nothing, because the name is enough for an agent and a description would count in
 * `tools/list`.
 */
const NOTES: Readonly<Record<string, string>> = {
  "top-k": "Most results to return.",
  mode: "How to search: hybrid is keyword and semantic.",
  "tag-match": "Compare whole tags, or parts of them.",
  "created-from": "Only records created at this time or later: 2026-11-16, yesterday, 7d.",
  "created-before": "Only records created before this time: 2026-11-16, yesterday, 7d.",
  limit: "Most records to return.",
  offset: "Records to skip.",
  "sort-by": "Order, the newest first.",
  id: "Id, its beginning, latest, or @2 for the second newest.",
  summary: "New summary.",
  description: "New description.",
  context: "New facts as key/value pairs, instead of all earlier ones.",
  tags: "New labels, instead of all earlier ones.",
  kind: "Kind of the record.",
  category: "Category of the record, such as ops.",
  subcategory: "Part of the category.",
  query: "Question or error text.",
  outdated: "Report that the record is no longer true.",
  action: "What to do with the record.",
  answer: "New answer.",
  symbol: "Name of a function, class or another definition.",
  glob: "Only files that match, such as src/**/*.ts.",
  path: "File of the project.",
  "start-line": "First line to read.",
  "end-line": "Last line to read.",
  pattern: "Regular expression.",
  "ignore-case": "Ignore capital letters.",
  status: "Only runs with this status.",
  component: "Component of the system.",
  port: "Port of the component.",
  text: "Text to compare with.",
};

/** Returns what a flag without a description means; empty if its name says it all. */
export const flagNote = (name: string): string => NOTES[name] ?? "";
