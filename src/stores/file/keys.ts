import { mkdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { readRegularFile } from "../../files/regular-file.ts";
import type { StoredApiKey } from "../../model/api-key.ts";
import { CairnError } from "../../model/errors.ts";
import { once } from "../../model/once.ts";
import type { KeyStore } from "../../ports/key-store.ts";
import { addKey, type KeyChange, markKeyUsed, removeKey, replaceKey } from "../rows/key-changes.ts";
import { withFileLock } from "./lock.ts";
import { replaceFile } from "./replace-file.ts";

const KeyFile = once(() =>
  z.strictObject({
    version: z.literal(1),
    keys: z.array(
      z.strictObject({
        id: z.string().min(1),
        label: z.string(),
        access: z.enum(["read", "write", "admin"]),
        projects: z.union([z.literal("all"), z.array(z.string())]),
        createdAt: z.iso.datetime(),
        expiresAt: z.iso.datetime().optional(),
        lastUsedAt: z.iso.datetime().optional(),
        secretHash: z.string().regex(/^[0-9a-f]{64}$/),
      }),
    ),
  }),
);

/** Bytes of the key file: some ten thousand keys. */
const KEYS_BYTES = 16 * 1024 * 1024;

export interface FileKeyStore extends KeyStore {
  /** Renames the file to `keys.json.migrated`, after its keys were copied to another store. */
  retire(): Promise<void>;
}

/** API keys in `<dataDir>/keys.json`, readable by its owner only. A reader sees the file before or after a change, never in between. */
export function fileKeyStore({ dataDir }: { readonly dataDir: string }): FileKeyStore {
  const path = join(dataDir, "keys.json");
  let seen: { readonly stamp: string; readonly keys: readonly StoredApiKey[] } | undefined;

  // Every request asks for the keys, so the file is only read again when it was replaced.
  async function all(): Promise<readonly StoredApiKey[]> {
    const stamp = await stampOf(path);
    if (stamp === undefined) return [];
    if (seen?.stamp !== stamp) seen = { stamp, keys: await read(path) };
    return seen.keys;
  }

  async function change(update: KeyChange): Promise<boolean> {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    return withFileLock(`${path}.lock`, async () => {
      const before = (await stampOf(path)) === undefined ? [] : await read(path);
      const after = update(before);
      if (after !== before) await replaceFile(path, `${JSON.stringify({ version: 1, keys: after }, null, 2)}\n`);
      return after !== before;
    });
  }

  return {
    all,
    add: async (key) => void (await change(addKey(key))),
    replace: (id, expiresAt, successor) => change(replaceKey(id, expiresAt, successor)),
    markUsed: async (id, at) => void (await change(markKeyUsed(id, at))),
    remove: (id) => change(removeKey(id)),
    async retire() {
      await rename(path, `${path}.migrated`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
      });
    },
  };
}

async function stampOf(path: string): Promise<string | undefined> {
  try {
    const { ino, mtimeNs, size } = await stat(path, { bigint: true });
    return `${ino}:${mtimeNs}:${size}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined; // no keys were ever made
    throw unreadable(path, error);
  }
}

async function read(path: string): Promise<readonly StoredApiKey[]> {
  try {
    return KeyFile().parse(JSON.parse(readRegularFile(path, KEYS_BYTES).toString("utf8"))).keys;
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, cause: unknown): CairnError {
  return new CairnError(
    "unavailable",
    `The API keys in ${path} cannot be read, so no key is accepted. Restore the file from a backup, or remove it and make new keys.`,
    { cause },
  );
}
