import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";
import { rowText } from "./operations.ts";
import { DayCounts, UtcOffset } from "./search-schemas.ts";
import { CheckpointOutput, FilterFields, TextFilter } from "./wire-schemas.ts";

export const checkpointListAll = operation({
  name: "checkpoint_list_all",
  summary: "List the checkpoints of every project that you may access, newest first.",
  input: z.strictObject({
    limit: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault),
    cursor: text(LIMITS.cursorChars, 1).optional().describe("next_cursor of the previous page."),
    ...FilterFields,
    text: TextFilter,
  }),
  output: z.object({
    checkpoints: z.array(CheckpointOutput),
    total: z.int().describe("All matches."),
    partial: z.boolean().describe("True if some projects could not be read; degraded has the reasons."),
    degraded: z.array(z.string()).describe("Projects that could not be read, with the reason."),
    next_cursor: z.string().optional(),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  mcp: { rows: "checkpoints" },
  cli: {
    examples: ["cairn checkpoint list-all", "cairn checkpoint list-all --text certificates --limit 50"],
    view: { table: "checkpoints", columns: ["id", "created_at", "summary", "project_path", "tags"], optional: ["tags"] },
  },
  render: ({ checkpoints, total, degraded, next_cursor }) =>
    [
      `${checkpoints.length} of ${total} checkpoints`,
      ...checkpoints.map((checkpoint) => `${checkpoint.project_path}  ${rowText(checkpoint)}`),
      ...degraded.map((part) => `Note: ${part}.`),
      next_cursor ? `Next page: cursor ${next_cursor}` : "",
    ]
      .filter(Boolean)
      .join("\n"),
  run: (cairn, input, { mayTouch }) => cairn.checkpoints.listAll({ ...input, mayTouch }),
});

export const checkpointDaysAll = operation({
  name: "checkpoint_days_all",
  summary: "Count the checkpoints of every project that you may access per day, the latest day first.",
  input: z.strictObject({
    ...FilterFields,
    text: TextFilter,
    utc_offset_minutes: UtcOffset,
    limit: z.int().min(1).max(LIMITS.daysListed).default(90),
  }),
  output: DayCounts.extend({
    partial: z.boolean().describe("True if some projects could not be read; degraded has the reasons."),
    degraded: z.array(z.string()),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  cli: { examples: ["cairn checkpoint days-all"], view: { table: "days", columns: ["day", "count"] } },
  render: ({ days, degraded }) =>
    [...days.map(({ day, count }) => `${day}  ${count}`), ...degraded.map((part) => `Note: ${part}.`)].join("\n") || "No checkpoints.",
  run: (cairn, input, { mayTouch }) => cairn.checkpoints.daysAll({ ...input, mayTouch }),
});
