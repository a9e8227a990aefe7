// sqlite-vec: a virtual table with float32 vectors, every search scans all of them.
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { getLoadablePath } from "sqlite-vec";

export function open({ folder, dimension }) {
  const database = new DatabaseSync(join(folder, "sqlite-vec.db"), { allowExtension: true });
  database.enableLoadExtension(true);
  database.loadExtension(getLoadablePath());
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database.exec(`CREATE VIRTUAL TABLE v USING vec0(vector float[${dimension}] distance_metric=cosine)`);
  const insert = database.prepare("INSERT INTO v (rowid, vector) VALUES (?, ?)");
  const remove = database.prepare("DELETE FROM v WHERE rowid = ?");
  const search = database.prepare("SELECT rowid FROM v WHERE vector MATCH ? AND k = ? ORDER BY distance");
  const filtered = database.prepare(
    "SELECT rowid FROM v WHERE vector MATCH ? AND k = ? AND rowid IN (SELECT value FROM json_each(?)) ORDER BY distance",
  );
  const bytes = (vector) => new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  const together = (work) => {
    database.exec("BEGIN");
    work();
    database.exec("COMMIT");
  };
  return {
    add: (entries) =>
      together(() => {
        for (const { key, vector } of entries) insert.run(BigInt(key), bytes(vector));
      }),
    remove: (keys) =>
      together(() => {
        for (const key of keys) remove.run(BigInt(key));
      }),
    search: (vector, limit) => search.all(bytes(vector), limit).map(({ rowid }) => rowid),
    searchAllowed: (vector, limit, keys) => filtered.all(bytes(vector), limit, JSON.stringify([...keys])).map(({ rowid }) => rowid),
    close: () => database.close(),
  };
}
