import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Access, ApiKey, StoredApiKey } from "../model/api-key.ts";
import { CairnError } from "../model/errors.ts";
import { type Clock, SHARED_PROJECT_ID, sha256Hex } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import { ProjectId } from "../operations/schemas.ts";
import type { KeyStore } from "../ports/key-store.ts";
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
  /** Returns whether the key existed. The next request with it is refused. */
  revoke(id: string): Promise<boolean>;
  /** Returns the key, or `undefined` if it is wrong, revoked or expired; the caller does not learn which. */
  verify(presented: string): Promise<ApiKey | undefined>;
}

export interface KeyDeps {
  readonly store: KeyStore;
  readonly now: Clock;
}

const SHAPE = /^cairn_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;
const NO_HASH = "0".repeat(64);

/**
 * Keys read `cairn_<id>_<secret>`. The secret is 256 random bits, so a plain SHA-256 of it is safe to store: slow
 * password hashes (scrypt, argon2) protect guessable secrets, and would only slow every request down.
 */
export function keys({ store, now }: KeyDeps): Keys {
  return {
    async create({ label, access, projects, expiresAt }) {
      const createdAt = now();
      if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.parse(createdAt))
        throw new CairnError("invalid_input", "expires_at is in the past. Use a later time, or omit it for a key that does not expire.");
      assertProjects(projects);
      if ((await store.all()).length >= LIMITS.apiKeys)
        throw new CairnError("conflict", `There are already ${LIMITS.apiKeys} keys. Revoke unused ones.`);
      const id = randomBytes(6).toString("hex");
      const secret = randomBytes(32).toString("base64url");
      const key: ApiKey = {
        id,
        label: redactSecrets(label).text,
        access,
        projects,
        createdAt,
        ...(expiresAt === undefined ? {} : { expiresAt }),
      };
      await store.add({ ...key, secretHash: sha256Hex(secret) });
      return { ...key, key: `cairn_${id}_${secret}` };
    },

    async list() {
      return (await store.all()).map(withoutHash);
    },

    revoke: (id) => store.remove(id),

    async verify(presented) {
      const all = await store.all();
      const [, id, secret] = SHAPE.exec(presented) ?? [];
      const stored = all.find((key) => key.id === id);
      // Constant time for every input, so that timing reveals nothing.
      const matches = sameHash(sha256Hex(secret ?? presented), stored?.secretHash ?? NO_HASH);
      if (!stored || !matches) return undefined;
      if (stored.expiresAt !== undefined && Date.parse(stored.expiresAt) <= Date.parse(now())) return undefined;
      return withoutHash(stored);
    },
  };
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
