import { randomBytes } from "node:crypto";
import type { VectorChange, VectorOutbox } from "../../../ports/vector-outbox.ts";
import type { PostgresTx } from "../driver/driver.ts";
import type { EmbeddedRecords } from "./embeddings.ts";
import type { ProjectTables } from "./project-tables.ts";

/** A trigger records every change of a vector, by any process, while an external index is enabled. */
export const OUTBOX_SCHEMA = `
CREATE TABLE vector_index (collection text PRIMARY KEY, name text NOT NULL);
CREATE TABLE vector_outbox (
  collection text NOT NULL,
  version_id integer NOT NULL,
  key bigint NOT NULL,
  change bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  PRIMARY KEY (collection, version_id, key)
);
CREATE FUNCTION vectors_to_outbox() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $body$
BEGIN
  IF EXISTS (SELECT 1 FROM vector_index WHERE collection = coalesce(NEW.collection, OLD.collection)) THEN
    INSERT INTO vector_outbox (collection, version_id, key) 
    VALUES (coalesce(NEW.collection, OLD.collection), coalesce(NEW.version_id, OLD.version_id), coalesce(NEW.key, OLD.key))
    ON CONFLICT (collection, version_id, key) DO UPDATE SET change = DEFAULT;
  END IF;
  RETURN NULL;
END $body$;
CREATE TRIGGER vectors_outbox AFTER INSERT OR UPDATE OR DELETE ON vectors FOR EACH ROW EXECUTE FUNCTION vectors_to_outbox();
`;

/** Returns the outbox of one collection: the changes of its vectors, for an external index. */
export function postgresOutbox(
  { collection, table, slots, parts }: Pick<EmbeddedRecords, "collection" | "table" | "slots" | "parts">,
  tables: ProjectTables,
): VectorOutbox {
  const stored = tables.part("vectors");
  const joined = tables.part("vectors", ...parts);
  const requeue = "ON CONFLICT (collection, version_id, key) DO UPDATE SET change = DEFAULT";
  return {
    async enable() {
      const find = (tx: PostgresTx) => tx.get<{ name: string }>("SELECT name FROM vector_index WHERE collection = $1", collection);
      // Searches call it too, and a write makes the counts of the project uncertain.
      const known = await stored.read(undefined, find);
      if (known) return known.name;
      return stored.write(
        async (tx) => {
          // Blocks changes of vectors until the index is enabled and the outbox has all existing keys.
          await tx.run("LOCK TABLE vectors IN SHARE ROW EXCLUSIVE MODE");
          const added = await tx.run(
            "INSERT INTO vector_index (collection, name) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            collection,
            randomBytes(6).toString("hex"),
          );
          if (added > 0)
            await tx.run(
              `INSERT INTO vector_outbox (collection, version_id, key) SELECT collection, version_id, key FROM vectors WHERE collection = $1 ON CONFLICT DO NOTHING`,
              collection,
            );
          return (await find(tx))!.name;
        },
        { idempotent: true },
      );
    },

    pending: (versionId, limit, afterChange) =>
      joined.read<VectorChange[]>([], async (tx) => {
        const rows = await tx.all<{ change: number; key: number; id: string | null; vector: string | null }>(
          `SELECT o.change, o.key, r.id, v.vector::text AS vector FROM vector_outbox o
             LEFT JOIN ${table} r ON r.key = o.key / ${slots}
             LEFT JOIN vectors v ON v.version_id = o.version_id AND v.key = o.key
            WHERE o.collection = $1 AND o.version_id = $2 AND o.change > $4 ORDER BY o.change LIMIT $3`,
          collection,
          versionId,
          limit,
          afterChange,
        );
        return rows.map(({ change, key, id, vector }) => ({
          change,
          key,
          id: id ?? undefined,
          vector: vector === null ? undefined : Float32Array.from(JSON.parse(vector)),
        }));
      }),

    async done(versionId, changes) {
      await stored.change(undefined, async (tx) => {
        const gone = await tx.all<{ key: number }>(
          "DELETE FROM vector_outbox WHERE collection = $1 AND version_id = $2 AND change = ANY ($3::bigint[]) RETURNING key",
          collection,
          versionId,
          changes.map(({ change }) => change),
        );
        const forgotten = new Set(gone.map(({ key }) => key));
        const again = changes.filter(({ key }) => !forgotten.has(key)).map(({ key }) => key);
        // Changed again since it was read: this process may have overwritten a newer copy of the vector.
        if (again.length > 0)
          await tx.run(
            `INSERT INTO vector_outbox (collection, version_id, key) SELECT $1, $2, unnest($3::bigint[]) ${requeue}`,
            collection,
            versionId,
            again,
          );
      });
    },

    pendingIds: (versionId, limit) =>
      joined.read<string[]>([], async (tx) => {
        const rows = await tx.all<{ id: string }>(
          `SELECT DISTINCT r.id FROM vector_outbox o JOIN ${table} r ON r.key = o.key / ${slots} WHERE o.collection = $1 AND o.version_id = $2 LIMIT $3`,
          collection,
          versionId,
          limit,
        );
        return rows.map(({ id }) => id);
      }),

    deletedVersions: () =>
      stored.read<number[]>([], async (tx) => {
        const rows = await tx.all<{ version_id: number }>(
          "SELECT DISTINCT version_id FROM vector_outbox WHERE collection = $1 AND version_id NOT IN (SELECT version_id FROM embedding_versions)",
          collection,
        );
        return rows.map(({ version_id }) => version_id);
      }),

    async forgetVersions(versionIds) {
      await stored.change(
        0,
        (tx) => tx.run("DELETE FROM vector_outbox WHERE collection = $1 AND version_id = ANY ($2::integer[])", collection, [...versionIds]),
        { idempotent: true },
      );
    },

    async mark(versionId, keys) {
      await stored.change(
        0,
        (tx) =>
          tx.run(
            "INSERT INTO vector_outbox (collection, version_id, key) SELECT $1, $2, unnest($3::bigint[]) ON CONFLICT DO NOTHING",
            collection,
            versionId,
            [...keys],
          ),
        { idempotent: true },
      );
    },

    keys: (versionId, afterKey, limit) =>
      stored.read<number[]>([], async (tx) => {
        const rows = await tx.all<{ key: number }>(
          "SELECT key FROM vectors WHERE collection = $1 AND version_id = $2 AND key > $3 ORDER BY key LIMIT $4",
          collection,
          versionId,
          afterKey,
          limit,
        );
        return rows.map(({ key }) => key);
      }),
  };
}
