import { z } from "zod";

/** Wire schemas of the structure operations. */

const Definition = {
  path: z.string(),
  line: z.int(),
  end_line: z.int(),
  name: z.string().optional().describe("Absent at the top level of a file."),
  kind: z.string().optional(),
  parents: z.array(z.string()),
};

const Node = { ...Definition, content_hash: z.string(), stale: z.boolean().optional() };

const Use = z.object({ path: z.string().optional(), line: z.int(), column: z.int(), text: z.string(), call: z.boolean() });

const Note = z.string().describe("What the answer lacks, and that it is syntactic.");

export const CallersOutput = z.object({ callers: z.array(z.object({ ...Node, uses: z.array(Use) })), note: Note });

export const CalleesOutput = z.object({
  definitions: z.array(z.object(Node)),
  callees: z.array(
    z.object({
      name: z.string(),
      definitions: z.array(z.object(Definition)).describe("The most likely first."),
      defined_times: z.int(),
      uses: z.array(Use),
    }),
  ),
  note: Note,
});

export const ImpactOutput = z.object({
  affected: z.array(z.object({ ...Node, depth: z.int(), via: z.string(), test: z.boolean() })),
  files: z.int(),
  not_followed: z.array(z.string()).describe("Names with too many definitions."),
  note: Note,
});

export const GrepOutput = z.object({
  matches: z.array(
    z.object({
      path: z.string(),
      line: z.int(),
      column: z.int(),
      text: z.string(),
      text_start_line: z.int(),
      content_hash: z.string(),
      stale: z.boolean().optional(),
    }),
  ),
  complete: z.boolean(),
  searched_files: z.int(),
  note: z.string().optional(),
});
