import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Access, ApiKey, StoredApiKey } from "../model/api-key.ts";
import { CairnError } from "../model/errors.ts";
import { type Clock, SHARED_PROJECT_ID, sha256Hex } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import { ProjectId } from "../operations/schemas.ts";
import type { KeyStore } from "../ports/key-store.ts";
import type { BackgroundTasks } from "../scheduling/background-tasks.ts";
import type { ExchangeUsage } from "../scheduling/rate-limit.ts";
import { redactSecrets } from "../text/redact.ts";

export interface CreateKey {
  readonly label: string;
  readonly access: Access;
  readonly projects: "all" | readonly string[];
  readonly expiresAt?: string | undefined;
}

/** Manages the API keys of the HTTP server. */
export interface Keys {
  /** Returns the secret in `key`. It is not stored, so it cannot be read again. */
  create(input: CreateKey): Promise<ApiKey & { readonly key: string }>;
  list(): Promise<readonly ApiKey[]>;
  /**
   * Creates a key with the same label, access and projects, and lets the old one expire after the overlap. Without `expiresAt` the new key
   * is valid for as long as the old one was meant to be. Raises `not_found`.
   */
  rotate(input: RotateKey): Promise<ApiKey & { readonly key: string; readonly replaced: ApiKey }>;
  /** Copies the keys of the data folder into the database. Raises `conflict` where keys are kept in the data folder. */
  migrate(): Promise<{ readonly migrated: number; readonly present: number }>;
  /** Returns whether the key existed. It is refused within a second. */
  revoke(id: string): Promise<boolean>;
  /** Returns the key, or `undefined` if it is wrong, revoked or expired; the caller does not learn which. */
  verify(presented: string): Promise<ApiKey | undefined>;
  /** Makes rate limits hold over all servers of a database. Absent where one server has all callers. */
  readonly exchangeUsage?: ExchangeUsage | undefined;
}

export interface RotateKey {
  readonly id: string;
  /** Hours for which the old key stays valid. */
  readonly overlapHours: number;
  readonly expiresAt?: string | undefined;
}

export interface KeyDeps {
  readonly store: KeyStore;
  /** The keys of the data folder, if `store` is a database. */
  readonly file?: (KeyStore & { retire(): Promise<void> }) | undefined;
  readonly now: Clock;
  readonly inBackground: BackgroundTasks["start"];
}

/** Milliseconds between two records of a key's use. */
const USE_RECORDED_EVERY_MS = 60_000;

const SHAPE = /^cairn_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;
const NO_HASH = "0".repeat(64);

/**
 * Keys read `cairn_<id>_<secret>`. The secret is 256 random bits, so a plain SHA-256 of it is safe to store: slow
 * password hashes (scrypt, argon2) protect guessable secrets, and would only slow every request down.
 */
export function keys({ store, file, now, inBackground }: KeyDeps): Keys {
  const recorded = new Map<string, number>();

  function recordUse(id: string): void {
    const at = now();
    const timeMs = Date.parse(at);
    if (timeMs - (recorded.get(id) ?? Number.NEGATIVE_INFINITY) < USE_RECORDED_EVERY_MS) return;
    recorded.set(id, timeMs);
    inBackground(() => store.markUsed(id, at));
  }

  async function assertRoom(): Promise<void> {
    if ((await store.all()).length >= LIMITS.apiKeys)
      throw new CairnError("conflict", `There are already ${LIMITS.apiKeys} keys. Revoke unused ones.`);
  }

  return {
    exchangeUsage: store.exchangeUsage,

    async create(input) {
      assertProjects(input.projects);
      const { key, stored } = newKey({ ...input, label: redactSecrets(input.label).text }, now());
      await assertRoom();
      await store.add(stored);
      return { ...withoutHash(stored), key };
    },

    async rotate({ id, overlapHours, expiresAt }) {
      const old = (await store.all(id)).find((key) => key.id === id);
      if (!old)
        throw new CairnError("not_found", `There is no API key ${JSON.stringify(id.slice(0, 100))}. \`cairn key list\` shows the ids.`);
      const createdAt = now();
      if (isExpired(old, createdAt))
        throw new CairnError("conflict", `The API key ${id} has expired. Create a new one with \`cairn key create\`.`);
      const lifetimeMs = old.expiresAt === undefined ? undefined : Date.parse(old.expiresAt) - Date.parse(old.createdAt);
      const until = expiresAt ?? (lifetimeMs === undefined ? undefined : timeAfter(createdAt, lifetimeMs));
      const { key, stored } = newKey({ ...old, expiresAt: until }, createdAt);
      await assertRoom();
      const overlapEnd = timeAfter(createdAt, overlapHours * 3_600_000);
      const oldUntil = old.expiresAt !== undefined && old.expiresAt < overlapEnd ? old.expiresAt : overlapEnd;
      if (!(await store.replace(id, oldUntil, stored)))
        throw new CairnError("conflict", `The API key ${id} was revoked meanwhile. Create a new one with \`cairn key create\`.`);
      return { ...withoutHash(stored), key, replaced: { ...withoutHash(old), expiresAt: oldUntil } };
    },

    async migrate() {
      if (!file)
        throw new CairnError(
          "conflict",
          "API keys are kept in the data folder with this storage, so there is nothing to migrate. Set `storage` to a postgres:// URL first.",
        );
      const present = new Set((await store.all()).map(({ id }) => id));
      const found = await file.all();
      for (const key of found) await store.add(key);
      await file.retire();
      const migrated = found.filter(({ id }) => !present.has(id)).length;
      return { migrated, present: found.length - migrated };
    },

    async list() {
      return (await store.all()).map(withoutHash);
    },

    revoke: (id) => store.remove(id),

    async verify(presented) {
      const [, id, secret] = SHAPE.exec(presented) ?? [];
      const all = await store.all(id);
      const stored = all.find((key) => key.id === id);
      // Constant time for every input, so that timing reveals nothing.
      const matches = sameHash(sha256Hex(secret ?? presented), stored?.secretHash ?? NO_HASH);
      if (!stored || !matches) return undefined;
      if (isExpired(stored, now())) return undefined;
      recordUse(stored.id);
      return withoutHash(stored);
    },
  };
}

function newKey(
  { label, access, projects, expiresAt }: CreateKey,
  createdAt: string,
): { readonly key: string; readonly stored: StoredApiKey } {
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.parse(createdAt))
    throw new CairnError("invalid_input", "expires_at is in the past. Use a later time, or omit it for a key that does not expire.");
  const id = randomBytes(6).toString("hex");
  const secret = randomBytes(32).toString("base64url");
  const stored = { id, label, access, projects, createdAt, ...(expiresAt !== undefined && { expiresAt }), secretHash: sha256Hex(secret) };
  return { key: `cairn_${id}_${secret}`, stored };
}

function isExpired({ expiresAt }: ApiKey, now: string): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) <= Date.parse(now);
}

function timeAfter(time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString();
}

/** Raises `invalid_input` for names that match no call, because calls name their project in normal form. */
function assertProjects(projects: CreateKey["projects"]): void {
  if (projects === "all") return;
  if (projects.length === 0)
    throw new CairnError("invalid_input", "projects: name at least one project, or create the key for all projects.");
  for (const project of projects) {
    const problem = project === SHARED_PROJECT_ID ? undefined : ProjectId.safeParse(project).error?.issues[0]?.message;
    if (problem === undefined) continue;
    throw new CairnError(
      "invalid_input",
      `projects: ${JSON.stringify(project.slice(0, 200))} ${problem}. Write each project as an absolute path such as /home/me/app, as a name such as my-app, or as "shared" for shared knowledge. For every project, create the key for all projects.`,
    );
  }
}

function sameHash(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, "hex"), Buffer.from(b, "hex"));
}

function withoutHash({ secretHash: _, ...key }: StoredApiKey): ApiKey {
  return key;
}
