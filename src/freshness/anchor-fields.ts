import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { Id, text } from "../operations/schemas.ts";
import { CodePath } from "./wire-schemas.ts";

/** The fields of a save or update. */
export const AnchorFields = {
  code_path: CodePath,
  anchors: z
    .array(text(LIMITS.anchorChars, 1))
    .max(LIMITS.anchors, `at most ${LIMITS.anchors} anchors`)
    .optional()
    .describe("Files, symbols, commits or branches it depends on, such as src/a.ts#parse. Default: those in its text."),
  supersedes: z.array(Id).max(LIMITS.supersedes).optional().describe("Ids of records that this one replaces."),
};
