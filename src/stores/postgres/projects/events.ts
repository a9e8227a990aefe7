import type { ProjectEvents } from "../../../ports/event-log.ts";
import { postgresEventLog } from "../driver/event-log.ts";
import type { ProjectTables } from "./project-tables.ts";

/** Returns the events of the project in this schema. */
export function postgresProjectEvents(tables: ProjectTables): ProjectEvents {
  const log = postgresEventLog({
    ask: (sql, params) => tables.read((tx) => tx.all(sql, ...params)),
    change: (sql, params) => tables.write((tx) => tx.run(sql, ...params), { idempotent: true }),
  });
  return {
    ...log,
    async codeMark() {
      const found = await tables
        .part("code")
        .read<{ last: number; reported: string | null } | undefined>(undefined, (tx) =>
          tx.get("SELECT last, (SELECT max(updated_at) FROM index_reports) AS reported FROM code_generation WHERE id = 1"),
        );
      return `${found?.last ?? 0} ${found?.reported ?? ""}`;
    },
  };
}
