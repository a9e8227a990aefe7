// Operations that exist only to watch the edge at work: progress, cancellation, trace context, failures.
// Plain JavaScript, because a spawned server runs them too and Node 20 reads no TypeScript.
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

let aborted = 0;

function probe(name, input, output, run) {
  return {
    name,
    summary: `Test only: ${name}.`,
    input: z.strictObject(input),
    output: z.object(output),
    access: "read",
    annotations: { readOnly: true, destructive: false, idempotent: true },
    limits: { timeoutMs: 20_000 },
    toolset: "core",
    mcp: { compact: (result) => result },
    render: (result) => JSON.stringify(result),
    run,
  };
}

export const probeOperations = [
  probe("probe_count", { steps: z.int().min(1).max(1000) }, { counted: z.int() }, async (_cairn, { steps }, { signal, progress }) => {
    for (let step = 1; step <= steps; step++) {
      try {
        await sleep(60, undefined, { signal });
      } catch (error) {
        aborted++;
        throw error;
      }
      progress(step, steps, `step ${step}`);
    }
    return { counted: steps };
  }),
  probe("probe_aborted", {}, { aborted: z.int() }, async () => ({ aborted })),
  probe("probe_print", {}, { printed: z.boolean() }, async () => {
    console.log("this line must not reach the protocol");
    process.stdout.write("nor this one\n");
    return { printed: true };
  }),
  probe("probe_fail", {}, {}, async () => {
    throw new Error("secret inner detail");
  }),
];
