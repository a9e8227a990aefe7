import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileKeyStore } from "../../src/stores/file/keys.ts";
import { memoryKeyStore } from "../../src/stores/memory/keys.ts";
import { keyStoreContract } from "./key-contract.ts";

keyStoreContract("in memory", async () => ({ store: memoryKeyStore(), close: async () => {} }));

keyStoreContract("in a file", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "cairn-key-store-"));
  return { store: fileKeyStore({ dataDir }), close: () => rm(dataDir, { recursive: true, force: true }) };
});
