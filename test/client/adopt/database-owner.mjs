// Writes to a database as its owner does: each transaction keeps the sum of both tables, and WAL checkpoints run in between.
import { loadEngine } from "../../../dist/stores/sqlite/driver/engine.js";

const [path, mode] = process.argv.slice(2);
const { DatabaseSync } = await loadEngine();
const database = new DatabaseSync(path);
database.exec(`PRAGMA journal_mode = ${mode}; PRAGMA wal_autocheckpoint = 100; PRAGMA synchronous = OFF;
  CREATE TABLE IF NOT EXISTS a (n INTEGER, filler TEXT); CREATE TABLE IF NOT EXISTS b (n INTEGER, filler TEXT)`);
const plus = database.prepare("INSERT INTO a VALUES (?, ?)");
const minus = database.prepare("INSERT INTO b VALUES (?, ?)");
console.log("ready");
for (let n = 1; ; n++) {
  database.exec("BEGIN");
  plus.run(n, "x".repeat(2_000));
  minus.run(-n, "y".repeat(2_000));
  database.exec("COMMIT");
  if (n % 50 === 0) database.exec("DELETE FROM a; DELETE FROM b");
  if (n % 10 === 0) await new Promise((resolved) => setTimeout(resolved, mode === "WAL" ? 1 : 30));
}
