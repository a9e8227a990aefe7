import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { ProjectId, text } from "../operations/schemas.ts";
import { Anchors } from "./wire-schemas.ts";

/** The client side calls it before a save: only that side can compare the index with the working tree. */
export const codeAnchors = operation({
  name: "code_anchors",
  summary: "Resolve names of files and symbols to the code index, with the hashes of their texts.",
  input: z.strictObject({
    project_path: ProjectId,
    records: z
      .array(z.array(text(LIMITS.anchorChars, 1)).max(LIMITS.anchorCandidates))
      .max(LIMITS.anchorRecords)
      .describe("Names of each record, such as src/a.ts#parse. A name with optional:true is left out if it is not found."),
  }),
  output: z.object({ records: z.array(Anchors) }),
  access: "read",
  toolset: "none",
  cli: { hidden: true },
  render: ({ records }) => `${records.flat().length} anchors`,
  run: (cairn, input, { signal }) => cairn.anchors.resolve(input, { signal }),
});

export const freshnessOperations = [codeAnchors];
