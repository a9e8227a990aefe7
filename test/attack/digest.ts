import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256Hex } from "../../src/model/ids.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import type { Folders } from "./server.ts";

/** Digests of everything stored, one per database and table, and the API keys without their last use. Files whose name contains `except` are left out. */
export async function digests({ dataDir, stateDir }: Folders, except: string): Promise<Record<string, string>> {
  const { DatabaseSync } = await loadEngine();
  const found: Record<string, string> = { keys: sha256Hex(keysWithoutUse(join(dataDir, "keys.json"))) };
  for (const folder of [dataDir, stateDir])
    for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
      (name) => name.endsWith(".db") && !name.includes(except),
    )) {
      const database = new DatabaseSync(join(folder, file), { readOnly: true });
      try {
        const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all() as { name: string }[];
        for (const { name } of tables) {
          const select = database.prepare(`SELECT * FROM "${name}"`);
          select.setReadBigInts(true); // full-text indexes have ids beyond the safe integers
          const rows = select.all().map(rowText);
          found[`${file} ${name}`] = `${rows.length} rows, ${sha256Hex(rows.sort().join("\n"))}`;
        }
      } finally {
        database.close();
      }
    }
  return found;
}

function rowText(row: unknown): string {
  return JSON.stringify(Object.values(row as Record<string, unknown>), (_, value) =>
    typeof value === "bigint" ? String(value) : value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );
}

/** Returns the keys without the times of their last use, which every call may change. */
function keysWithoutUse(path: string): string {
  const { keys } = JSON.parse(readFileSync(path, "utf8")) as { readonly keys: readonly { readonly lastUsedAt?: string }[] };
  return JSON.stringify(keys.map(({ lastUsedAt: _, ...key }) => key));
}
