import { projectDatabaseName } from "../../../model/ids.ts";
import { CITUS_BYTES, LOCAL_BYTES } from "../driver/citus.ts";
import { type PostgresDatabase, type PostgresTx, quoteName, type WriteOptions } from "../driver/driver.ts";
import { isGone } from "../driver/errors.ts";
import { ensurePart } from "../driver/schema-version.ts";
import { type ProjectPart, projectSchema } from "./project-schema.ts";
import type { ProjectTables } from "./project-tables.ts";
import { termStatistics } from "./term-statistics.ts";

export interface ProjectTablesOptions {
  readonly database: PostgresDatabase;
  readonly projectId: string;
  readonly pgvector: string;
  /** The schema may be on a worker of Citus. */
  readonly isDistributed: boolean;
  readonly exactMax: number;
  /** Called before a write. */
  readonly announceWrite: () => Promise<void>;
  /** Called when the schema was dropped or renamed. */
  readonly forget: () => void;
  /** Creates the schema again. */
  readonly recreate: () => Promise<unknown>;
}

/** Fails if the schema was dropped, renamed or migrated away: then it does not have `checkpoints`, which every project has. */
const FIND_TABLE = "SELECT to_regclass($1) IS NOT NULL AS found, EXISTS (SELECT FROM checkpoints LIMIT 0)";

/** Returns the tables of one project. Parts that exist are remembered until the schema is found to be gone. */
export function openProjectTables(options: ProjectTablesOptions): ProjectTables {
  const { database, projectId, pgvector, isDistributed, exactMax, announceWrite, forget, recreate } = options;
  const schema = projectDatabaseName(projectId);
  const existing = new Set<ProjectPart>();

  async function has(tx: PostgresTx, ...parts: readonly ProjectPart[]): Promise<boolean> {
    for (const part of parts) {
      if (existing.has(part)) continue;
      const table = `${quoteName(schema)}.${quoteName(projectSchema.parts[part].tables[0]!)}`;
      const { found } = (await tx.get<{ found: boolean }>(FIND_TABLE, table))!;
      if (!found) return false;
      existing.add(part);
    }
    return true;
  }

  async function read<T>(work: (tx: PostgresTx) => Promise<T>): Promise<T> {
    try {
      return await database.read(schema, work);
    } catch (error) {
      if (!isGone(error)) throw error;
      forget();
      if (existing.size === 0) throw error;
      existing.clear(); // the schema may have been created again without a part
      return database.read(schema, work);
    }
  }

  async function write<T>(
    work: (tx: PostgresTx) => Promise<T>,
    writeOptions?: WriteOptions,
    parts: readonly ProjectPart[] = [],
  ): Promise<T> {
    const once = async () => {
      for (const part of parts)
        if (!existing.has(part) && !(await database.read(schema, (tx) => has(tx, part))))
          await ensurePart(database, schema, projectSchema, part, { typesIn: pgvector, isDistributed });
      return database.write(schema, work, writeOptions);
    };
    await announceWrite();
    try {
      return await once();
    } catch (error) {
      if (!isGone(error)) throw error;
      // The schema was dropped or quarantined: this write creates a new one.
      existing.clear();
      await recreate();
      return once();
    }
  }

  return {
    ...{ pgvector, exactMax, statistics: termStatistics(), has, read },
    write: (work, writeOptions) => write(work, writeOptions),
    async vacuum(names) {
      const tableNames = names.map((name) => `${quoteName(schema)}.${quoteName(name)}`);
      const size = async () => {
        const sql = `SELECT coalesce(sum(${isDistributed ? CITUS_BYTES : LOCAL_BYTES}), 0)::bigint AS bytes
          FROM unnest($1::text[]) AS name JOIN pg_catalog.pg_class c ON c.oid = name::regclass`;
        return (await database.statement<{ bytes: number }>(sql, [tableNames], { idempotent: true }))[0]!.bytes;
      };
      const before = await size();
      for (const name of tableNames)
        await database.statement(`VACUUM (ANALYZE) ${name}`, [], { idempotent: true, outsideTransaction: true });
      return Math.max(0, before - (await size()));
    },
    part: (...parts) => ({
      read: (absent, work) => read(async (tx) => ((await has(tx, ...parts)) ? work(tx) : absent)),
      write: (work, writeOptions) => write(work, writeOptions, parts),
      change: (absent, work, writeOptions) => write(async (tx) => ((await has(tx, ...parts)) ? work(tx) : absent), writeOptions),
    }),
  };
}
