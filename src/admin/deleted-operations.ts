import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { assertMayTouch, resolveDatabase } from "../model/record-scope.ts";
import { operation } from "../operations/operation.ts";
import { OLDER_THAN_FORMS, OlderThan, PlaceFields } from "../operations/write-schemas.ts";
import { olderThanTime } from "../text/point-in-time.ts";

export const deletedPurge = operation({
  name: "deleted_purge",
  summary: "Erase deleted records whose retention ended. Servers do it every hour.",
  input: z.strictObject({
    ...PlaceFields,
    older_than: OlderThan.optional().describe(
      `Erase records deleted before: ${OLDER_THAN_FORMS} 0d: all. Default: retention.deleted_days.`,
    ),
  }),
  output: z.object({ checkpoints: z.int(), knowledge: z.int() }),
  access: "write",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.upkeepTimeoutMs },
  toolset: "admin",
  cli: { examples: ["cairn deleted purge", "cairn deleted purge --older-than 7d"] },
  render: ({ checkpoints, knowledge }) => `Erased ${checkpoints} deleted checkpoints and ${knowledge} deleted knowledge records.`,
  async run(cairn, { olderThan, ...place }, { mayTouch, signal }) {
    assertMayTouch(place, mayTouch);
    const before = olderThan === undefined ? undefined : olderThanTime(olderThan, new Date().toISOString());
    return cairn.retention.purgeDeleted({ database: resolveDatabase(place), before }, { signal });
  },
});
