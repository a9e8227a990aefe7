import { systemDatabaseName } from "../../../model/ids.ts";
import { assertSystemId, byBytes, wrongOwnerError } from "../../../model/system-rules.ts";
import type { SystemStorage, SystemStore } from "../../../ports/system-store.ts";
import { databaseOf, type PostgresSource, quoteName } from "../driver/driver.ts";
import { ensureSchema, tableExists } from "../driver/schema-version.ts";
import { systemSchema } from "./schema.ts";
import { postgresSystemStore } from "./store.ts";

/** Systems as PostgreSQL schemas, one each, in one database. */
export function postgresSystemStorage(options: PostgresSource): SystemStorage {
  const database = databaseOf(options);
  const known = new Map<string, Promise<SystemStore>>();
  const locationOf = (systemId: string) => `${database.where} (schema ${systemDatabaseName(systemId)})`;

  async function make(systemId: string): Promise<SystemStore> {
    const schema = systemDatabaseName(systemId);
    await ensureSchema(database, schema, systemSchema);
    const owner = await database.write(
      schema,
      async (tx) => {
        await tx.run("INSERT INTO metadata (key, value) VALUES ('system_id', $1) ON CONFLICT DO NOTHING", systemId);
        return (await tx.get<{ value: string }>("SELECT value FROM metadata WHERE key = 'system_id'"))?.value;
      },
      { idempotent: true },
    );
    if (owner !== systemId) throw wrongOwnerError(locationOf(systemId), owner, systemId);
    return postgresSystemStore(systemId, database, () => known.delete(systemId));
  }

  function create(systemId: string): Promise<SystemStore> {
    assertSystemId(systemId);
    let making = known.get(systemId);
    if (!making) {
      making = make(systemId);
      known.set(systemId, making);
      making.catch(() => known.delete(systemId)); // tried again by the next call
    }
    return making;
  }

  return {
    create: async (systemId) => create(systemId),

    async find(systemId) {
      assertSystemId(systemId);
      const schema = systemDatabaseName(systemId);
      if (!known.has(systemId) && !(await database.read(schema, (tx) => tableExists(tx, schema, "metadata")))) return undefined;
      return create(systemId);
    },

    async systems() {
      return database.read("pg_catalog", async (tx) => {
        const schemas = await tx.all<{ name: string }>(
          `SELECT nspname AS name FROM pg_namespace
           WHERE nspname ~ '^system_[0-9a-f]{16}$' AND to_regclass(quote_ident(nspname) || '.metadata') IS NOT NULL ORDER BY nspname`,
        );
        const found: string[] = [];
        for (const { name } of schemas) {
          const [row] = await tx.exec<{ value: string }>(`SELECT value FROM ${quoteName(name)}.metadata WHERE key = 'system_id'`);
          if (row) found.push(row.value);
        }
        return found.sort(byBytes);
      });
    },

    location: locationOf,

    async sizeBytes(systemId) {
      const found = await database.read("pg_catalog", (tx) =>
        tx.get<{ bytes: string | null }>(
          `SELECT sum(pg_total_relation_size(c.oid))::text AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = $1 AND c.relkind IN ('r', 'm')`,
          systemDatabaseName(systemId),
        ),
      );
      return found?.bytes == null ? undefined : Number(found.bytes);
    },

    close: () => database.close(),
  };
}
