import { ADOPTED_TAG, isNoteSource } from "../../client/adopt/adopted-id.ts";
import type { AdoptTarget, Place, StoredCheckpoint, StoredNote } from "../../client/adopt/target.ts";
import type { Config } from "../../config/schema.ts";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Operation } from "../../operations/operation.ts";
import { retry } from "../../scheduling/retry.ts";

type Wire = Record<string, unknown>;

/** Calls an operation with wire data and returns wire data. */
export type CallOperation = (name: string, input: Wire) => Promise<Wire>;

export interface OpenedTarget {
  readonly target: AdoptTarget;
  /** Names the storage or the server, for the ledger. */
  readonly name: string;
  close(): Promise<void>;
}

/** Attempts of a call that the server refuses because of its rate limit. */
const ATTEMPTS = 20;

/**
 * Opens the configured storage or server. Its operations are called as a server offers them: the folder of an old session may be gone,
 * and the client side would refuse its project.
 */
export async function openTarget(config: Config, signal: AbortSignal): Promise<OpenedTarget> {
  const { operations } = await import("../../operations/list.ts");
  const find = (name: string) => operations.find((operation) => operation.name === name)!;
  if (config.api.url !== undefined) {
    const { configuredClient } = await import("../../client/remote/configured-client.ts");
    const client = await configuredClient(config, config.api.url);
    const call = (operation: Operation, input: Wire) => client.call(operation, input, signal);
    return {
      target: adoptTarget((name, input) => retryLimited(() => call(find(name), input), signal)),
      name: config.api.url,
      close: async () => {},
    };
  }
  const [{ openFromConfig }, { invoke, LOCAL_CALLER }] = await Promise.all([
    import("../../open/open-from-config.ts"),
    import("../../operations/invoke.ts"),
  ]);
  const cairn = await openFromConfig(config);
  const call: CallOperation = (name, input) => invoke(cairn, find(name), input, { caller: LOCAL_CALLER, signal, edge: "cli" });
  return { target: adoptTarget(call), name: config.storage, close: () => cairn.close() };
}

/** Returns the target on top of operations. */
export function adoptTarget(call: CallOperation): AdoptTarget {
  const placeOf = (place: Place): Wire => (place === undefined ? { scope: "shared" } : { project_path: place });

  async function* pages(name: string, field: string, input: Wire): AsyncGenerator<Wire> {
    let cursor: unknown;
    do {
      const page = await call(name, { ...input, ...(cursor !== undefined && { cursor }) });
      yield* page[field] as Wire[];
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  const self: AdoptTarget = {
    async importCheckpoints(project, records) {
      const { imported, problems } = await call("checkpoint_import", { project_path: project, records });
      return {
        imported: imported as number,
        problems: (problems as { record: number; problem: string }[]).map(({ record, problem }) => ({ index: record - 1, problem })),
      };
    },
    async getCheckpoint(project, id) {
      try {
        return storedCheckpoint(await call("checkpoint_get", { project_path: project, id, max_tokens: LIMITS.answerTokensMax }));
      } catch (error) {
        if (error instanceof CairnError && error.code === "not_found") return undefined;
        throw error;
      }
    },
    purgeCheckpoint: (project, id) => unlessMissing(call("checkpoint_purge", { project_path: project, id })),
    async *listCheckpoints(project, tag) {
      for await (const record of pages("checkpoint_export", "records", { project_path: project, without_deleted: true }))
        if ((record.tags as string[]).includes(tag)) yield storedCheckpoint(record);
    },
    async importNotes(place, source, records, replaces) {
      const input = { ...placeOf(place), source, format: "json", keep_missing: !replaces, content: JSON.stringify(records) };
      const { added, changed } = await call("knowledge_import", input);
      return { added: added as number, changed: changed as number };
    },
    async *listNotes(place) {
      const input = { ...placeOf(place), limit: LIMITS.listMax, max_tokens: LIMITS.answerTokensMax };
      for await (const { id, source } of pages("knowledge_list", "knowledge", input)) yield { id, source } as StoredNote;
    },
    async hasAdopted(place) {
      if (place !== undefined) {
        const { total } = await call("checkpoint_list", { project_path: place, tags: [ADOPTED_TAG], limit: 1 });
        if ((total as number) > 0) return true;
      }
      for await (const { source } of self.listNotes(place)) if (isNoteSource(source)) return true;
      return false;
    },
    purgeNote: (place, id) => unlessMissing(call("knowledge_purge", { ...placeOf(place), id })),
    async projects() {
      const { projects, total } = await call("stats", { limit: LIMITS.listMax });
      const paths = (projects as Wire[]).map(({ project_path }) => project_path as string);
      return { paths, more: (total as number) - paths.length };
    },
  };
  return self;
}

/** Waits for a call; a record that is gone already is no failure. */
async function unlessMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof CairnError && error.code === "not_found")) throw error;
  }
}

function storedCheckpoint({ id, context, created_at, updated_at }: Wire): StoredCheckpoint {
  return { id, context, createdAt: created_at, updatedAt: updated_at } as StoredCheckpoint;
}

/** Repeats a call that the rate limit of the server refused, after the time that the server states. */
function retryLimited<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const isRetryable = (error: unknown) => error instanceof CairnError && error.code === "rate_limited";
  return retry(call, { attempts: ATTEMPTS, backoff: { firstMs: 1_000, maxMs: 60_000, factor: 1 }, isRetryable, signal });
}
