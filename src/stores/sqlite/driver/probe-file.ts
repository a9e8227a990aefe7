import type { RecordedSchema } from "../../../model/schema.ts";
import { readFenceId } from "../migration/fence.ts";
import { loadEngine, releaseClosedConnections } from "./engine.ts";
import { assertDescriptorsLeft } from "./errors.ts";
import { recordedSchemas, tableNames } from "./table-facts.ts";
import { readActivity, type WriteActivity } from "./write-activity.ts";

/** Facts about a database file that need no full read. */
export interface FileProbe {
  /** The project or system that it belongs to; `undefined` before the first write. */
  readonly owner: string | undefined;
  readonly schema: readonly RecordedSchema[];
  /** Only of a system. */
  readonly activity: WriteActivity | undefined;
  readonly halfSnapshots: readonly string[];
  /** A migration has fenced it. */
  readonly fenced: boolean;
}

/** A snapshot takes seconds; one that is older and not complete never will be. */
const HALF_AFTER_MS = 600_000;

/** Why a file could not even be opened. */
export interface FailedProbe {
  readonly problem: string;
}

/** Files after which the descriptors of closed files are released. There may be thousands of files. */
const RELEASE_EVERY = 4;

/** Probes each file by itself, so that an unreadable one does not hide the others. A lack of descriptors is not damage. */
export async function probeFiles(paths: readonly string[], now: ProbeTime): Promise<(FileProbe | FailedProbe)[]> {
  const found: (FileProbe | FailedProbe)[] = [];
  for (const [index, path] of paths.entries()) {
    if (index % RELEASE_EVERY === RELEASE_EVERY - 1) await releaseClosedConnections();
    try {
      found.push(await probeFile(path, now));
    } catch (error) {
      assertDescriptorsLeft();
      found.push({ problem: (error as Error).message });
    }
  }
  return found;
}

/** Writes are counted from now back over the window. */
export interface ProbeTime {
  readonly nowSeconds: number;
  readonly windowSeconds: number;
}

async function probeFile(path: string, { nowSeconds, windowSeconds }: ProbeTime): Promise<FileProbe> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    const tables = new Set(tableNames(connection));
    const all = <Row>(sql: string, ...params: (string | number)[]) => connection.prepare(sql).all(...params) as Row[];
    const before = new Date(nowSeconds * 1_000 - HALF_AFTER_MS).toISOString();
    const owners = tables.has("project_info")
      ? all<{ owner: string }>("SELECT project_id AS owner FROM project_info WHERE id = 1")
      : tables.has("metadata")
        ? all<{ owner: string }>("SELECT value AS owner FROM metadata WHERE key = 'system_id'")
        : [];
    return {
      owner: owners[0]?.owner,
      schema: recordedSchemas(connection),
      activity: tables.has("write_activity") ? readActivity(all, nowSeconds, windowSeconds) : undefined,
      halfSnapshots: tables.has("snapshots")
        ? all<{ id: string }>("SELECT id FROM snapshots WHERE complete = 0 AND created_at < ? ORDER BY sequence", before).map(
            ({ id }) => id,
          )
        : [],
      fenced: readFenceId(connection) !== undefined,
    };
  } finally {
    connection.close();
  }
}
