import { CairnError } from "../model/errors.ts";
import type { Clock } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import type { ComponentOverview, SnapshotInfo, SnapshotMode } from "../model/system.ts";
import { assertSystemId, systemNotFoundError } from "../model/system-rules.ts";
import type { ListedMessage, SystemStorage } from "../ports/system-store.ts";
import { decodeCursor, encodeCursor } from "../text/cursor.ts";
import { decodeState } from "../text/plain-data.ts";
import { olderThanTime } from "../text/point-in-time.ts";
import type { SystemOptions } from "./options.ts";
import type { RestoreReport } from "./snapshots.ts";
import { createSystem, type System } from "./system.ts";
import type { VerifyLevel, VerifyReport } from "./verify.ts";

interface Named {
  readonly systemId: string;
}

export interface DeadLetter extends Omit<ListedMessage, "data" | "status" | "timestamp" | "reason"> {
  readonly receivedAt: string;
  readonly reason: string;
  /** The data as JSON, if requested and short enough. */
  readonly dataJson?: string | undefined;
}

export interface DeadLetterQuery extends Named {
  readonly component?: string | undefined;
  readonly port?: string | undefined;
  readonly includeData?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The configuration of systems. */
export type SystemSettings = Pick<SystemOptions, "commitsPerSecond" | "snapshots">;

/** The stored systems of all processes. */
export interface Systems {
  /** Opens a system with the configured write budget and snapshots, which `options` may override. Nothing is read before its first use. */
  open(systemId: string, options?: SystemOptions): System;
  /** The storage of systems. Pass it to `system` of `cairn-memory/systems` for other settings. */
  readonly storage: SystemStorage;
  list(): Promise<{
    readonly systems: readonly { readonly systemId: string; readonly location: string; readonly sizeBytes?: number | undefined }[];
  }>;
  get(input: Named): Promise<{ readonly systemId: string; readonly components: readonly ComponentOverview[] }>;
  snapshots(input: Named): Promise<{ readonly snapshots: readonly SnapshotInfo[] }>;
  /** With `keep`, removes older snapshots. */
  snapshot(input: Named & { readonly mode?: SnapshotMode | undefined; readonly keep?: number | undefined }): Promise<SnapshotInfo>;
  verify(
    input: Named & { readonly snapshotId?: string | undefined; readonly level?: VerifyLevel | undefined },
  ): Promise<{ readonly snapshots: readonly VerifyReport[] }>;
  restore(input: Named & { readonly snapshotId?: string | undefined }): Promise<RestoreReport>;
  deadLetters(input: DeadLetterQuery): Promise<{ readonly deadLetters: readonly DeadLetter[]; readonly nextCursor?: string | undefined }>;
  requeue(
    input: Named & { readonly component: string; readonly port: string; readonly ids?: readonly string[] | undefined },
  ): Promise<{ readonly requeued: number }>;
  prune(
    input: Named & {
      readonly keepLast?: number | undefined;
      /** A duration before now (`7d`, `12h`, `4w`), or a time in ISO 8601. */
      readonly olderThan?: string | undefined;
      /** Only counts what would be deleted. */
      readonly dryRun?: boolean | undefined;
    },
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly messages: number; readonly dryRun: boolean }>;
}

export interface SystemsDeps {
  readonly storage: SystemStorage;
  /** An empty storage in memory, for trial restores. */
  readonly scratch: () => Promise<SystemStorage>;
  readonly now: Clock;
  readonly newId: () => string;
  readonly settings: SystemSettings;
}

const DATA_SHOWN_CHARS = 10_000;
const NAMES_SHOWN = 10;

export function systems({ storage, scratch, now, newId, settings }: SystemsDeps): Systems {
  const find = async (systemId: string) => {
    const store = await storage.find(systemId);
    if (!store) throw systemNotFoundError(systemId);
    return store;
  };

  /** Opens an existing system without automatic snapshots, because another process may run it. */
  async function withSystem<T>(
    systemId: string,
    work: (system: System) => Promise<T>,
    keep: number = LIMITS.systemSnapshotsKept,
  ): Promise<T> {
    await find(systemId);
    const { commitsPerSecond } = settings;
    const opened = createSystem(
      { systemId, store: () => find(systemId), scratch },
      { now, newId, commitsPerSecond, snapshots: { everyMs: 0, keep } },
    );
    try {
      return await work(opened);
    } finally {
      await opened.close();
    }
  }

  return {
    storage,

    open: (systemId, options = {}) =>
      createSystem(
        { systemId, store: () => storage.create(systemId), scratch },
        { now, newId, ...settings, ...options, snapshots: { ...settings.snapshots, ...options.snapshots } },
      ),

    async list() {
      const listed = [];
      for (const systemId of await storage.systems())
        listed.push({ systemId, location: storage.location(systemId), sizeBytes: await storage.sizeBytes(systemId) });
      return { systems: listed };
    },

    async get({ systemId }) {
      assertSystemId(systemId);
      return { systemId, components: await (await find(systemId)).overview() };
    },

    snapshots: ({ systemId }) => withSystem(systemId, async (opened) => ({ snapshots: await opened.snapshots() })),

    snapshot: ({ systemId, mode = "consistent", keep }) => withSystem(systemId, (opened) => opened.snapshot({ mode }), keep),

    verify: ({ systemId, snapshotId, level = "checksum" }) =>
      withSystem(systemId, async (opened) => ({
        snapshots: await opened.verify({ level, ...(snapshotId === undefined ? {} : { snapshotId }) }),
      })),

    restore: ({ systemId, snapshotId }) => withSystem(systemId, (opened) => opened.restore(snapshotId === undefined ? {} : { snapshotId })),

    async deadLetters({ systemId, component, port, includeData = false, limit = 20, cursor }) {
      const after = cursor === undefined ? undefined : fromCursor(cursor);
      const found = await (await find(systemId)).messages({ status: "dead", component, port, after, limit: limit + 1 });
      const page = found.slice(0, limit);
      return {
        deadLetters: page.map((message) => deadLetter(message, includeData)),
        ...(found.length > limit ? { nextCursor: toCursor(page.at(-1)!) } : {}),
      };
    },

    requeue: ({ systemId, component, port, ids }) =>
      withSystem(systemId, async (opened) => {
        assertPort(await opened.overview(), component, port);
        return { requeued: await opened.component(component).port(port).requeue(ids) };
      }),

    prune: ({ systemId, keepLast, olderThan, dryRun = false }, options) =>
      withSystem(systemId, async (opened) => {
        const at = now();
        const olderThanMs = olderThan === undefined ? undefined : Math.max(0, Date.parse(at) - Date.parse(olderThanTime(olderThan, at)));
        return { messages: await opened.prune({ keepLast, olderThanMs }, { ...options, dryRun }), dryRun };
      }),
  };
}

function deadLetter({ component, port, id, offset, timestamp, attempts, reason, data }: ListedMessage, includeData: boolean): DeadLetter {
  const receivedAt = new Date(timestamp * 1_000).toISOString();
  const dataJson = includeData && data ? JSON.stringify(decodeState(data), readable) : undefined;
  const dataField = dataJson !== undefined && dataJson.length <= DATA_SHOWN_CHARS ? { dataJson } : {};
  return { component, port, id, offset, receivedAt, attempts, reason: reason ?? "", ...dataField };
}

/** Converts values that JSON cannot represent. */
function readable(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Map || value instanceof Set) return [...value];
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}

const ORDER = "dead letter";

function toCursor({ component, port, offset }: ListedMessage): string {
  return encodeCursor(ORDER, JSON.stringify([component, port]), String(offset));
}

function fromCursor(cursor: string): { component: string; port: string; offset: number } {
  const { at, id } = decodeCursor(cursor, ORDER);
  const offset = Number(id);
  try {
    const [component, port] = JSON.parse(at);
    if (typeof component === "string" && typeof port === "string" && Number.isSafeInteger(offset)) return { component, port, offset };
  } catch {
    // A forged cursor: the same error as for a cursor of another list.
  }
  throw new CairnError("invalid_input", "cursor: not one that this list gave. Start again without a cursor.");
}

/** Raises `not_found` with the existing names, because a misspelt port has no messages and would look like success. */
function assertPort(components: readonly ComponentOverview[], component: string, port: string): void {
  const found = components.find((one) => one.component === component);
  const names = (found ? found.ports.map((one) => one.port) : components.map((one) => one.component)).slice(0, NAMES_SHOWN);
  if (found?.ports.some((one) => one.port === port)) return;
  const what = found ? `port ${JSON.stringify(port)} of ${JSON.stringify(component)}` : `component ${JSON.stringify(component)}`;
  throw new CairnError("not_found", `There is no ${what}. There are: ${names.join(", ") || "none"}.`);
}
