import type { KeyDeps } from "../admin/keys.ts";
import { fileKeyStore } from "../stores/file/keys.ts";
import { memoryKeyStore } from "../stores/memory/keys.ts";
import { type OpenContext, storageKind } from "./open-options.ts";

/** Opens the store of API keys: shared by all servers of a PostgreSQL database, otherwise a file of this machine. */
export async function openKeyStores({ options, dataDir, pools }: OpenContext): Promise<Pick<KeyDeps, "store" | "file">> {
  const kind = storageKind(options);
  if (kind === "memory") return { store: memoryKeyStore() };
  const file = fileKeyStore({ dataDir });
  if (kind !== "postgres") return { store: file };
  const { postgresKeyStore } = await import("../stores/postgres/keys/store.ts");
  return { store: postgresKeyStore(await pools.forCalls(options.storage as string)), file };
}
