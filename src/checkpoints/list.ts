import type { MarkRecords } from "../freshness/mark-records.ts";
import type { WithCodePath } from "../model/anchor.ts";
import type { Checkpoint, CheckpointSort } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { CheckpointFilter, CheckpointStore } from "../ports/checkpoint-store.ts";
import type { DeletedQuery } from "../ports/deletable-records.ts";
import type { Storage } from "../ports/storage.ts";
import { utcTimes } from "../recall/search.ts";
import { decodeCursor, encodeCursor, isCursorOf, nextCursor } from "../text/cursor.ts";
import { fitCheckpoints } from "./fit.ts";

/** Selects and orders the checkpoints of a list. */
export interface ListCheckpoints extends CheckpointFilter, WithCodePath {
  readonly projectPath: string;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
  readonly sortBy?: CheckpointSort | undefined;
  /** Lists deleted checkpoints that can be restored, the latest deletion first. Cannot be combined with filters and `offset`. */
  readonly deleted?: boolean | undefined;
  /** Approximate size of the answer in tokens: long texts are cut first, then the page ends earlier. */
  readonly maxTokens?: number | undefined;
}

/** A checkpoint in a list; `deletedAt` is present if it is deleted. */
export interface ListedCheckpoint extends Checkpoint {
  readonly deletedAt?: string | undefined;
}

/** One page of checkpoints. */
export interface CheckpointList {
  readonly checkpoints: readonly ListedCheckpoint[];
  /** Records within the page that are damaged and were skipped. They count in `total`. */
  readonly damaged: readonly DamagedRecord[];
  readonly total: number;
  /** Where the next page starts; absent on the last page. */
  readonly nextCursor?: string | undefined;
  /** Records shortened to fit into `maxTokens`. */
  readonly shortened: number;
}

export interface ExportCheckpoints {
  readonly projectPath: string;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly withoutDeleted?: boolean | undefined;
}

/** One page of an export. `total` counts the deleted checkpoints too, unless they are left out. */
export interface ExportedPage extends Omit<CheckpointList, "checkpoints" | "shortened"> {
  readonly records: readonly ListedCheckpoint[];
}

export interface ListDeps {
  readonly storage: Storage;
  readonly markRecords: MarkRecords;
}

/** Returns a page of a project's checkpoints, or of its deleted ones. */
export async function listCheckpoints({ storage, markRecords }: ListDeps, input: ListCheckpoints): Promise<CheckpointList> {
  const { projectPath, codePath = projectPath, limit = 10, offset = 0, cursor, sortBy = "created_at", ...more } = input;
  const { deleted = false, maxTokens, ...filter } = more;
  if (deleted) assertUnfiltered(filter, offset);
  const order = deleted ? "deleted_at" : sortBy;
  const after = cursor === undefined ? undefined : decodeCursor(cursor, order);
  const project = await storage.find(projectPath);
  if (!project) return { checkpoints: [], damaged: [], total: 0, shortened: 0 };
  const page = deleted
    ? await listDeleted(project.checkpoints, limit + 1, after)
    : await project.checkpoints.list({ filter: utcTimes(filter), limit: limit + 1, offset, sortBy, after });
  const records = await markRecords<ListedCheckpoint>(codePath, page.checkpoints.slice(0, limit));
  const { records: shown, shortened } = fitCheckpoints(records, maxTokens ?? Number.POSITIVE_INFINITY);
  const orderOf = ({ createdOrder, updatedOrder, deletedAt }: ListedCheckpoint) =>
    deletedAt ?? (sortBy === "created_at" ? createdOrder : updatedOrder);
  const next = nextCursor(order, { read: page.checkpoints, shown, orderOf });
  return { checkpoints: shown, damaged: page.damaged, total: page.total, shortened, nextCursor: next };
}

/** Returns a page of all checkpoints, and after them the deleted ones unless they are left out. */
export async function exportPage(deps: ListDeps, input: ExportCheckpoints): Promise<ExportedPage> {
  const { projectPath, limit = LIMITS.transferRecords, cursor, withoutDeleted = false } = input;
  const list = (part: Omit<ListCheckpoints, "projectPath">) => listCheckpoints(deps, { projectPath, ...part });
  const inDeleted = cursor !== undefined && isCursorOf(cursor, "deleted_at");
  const { checkpoints: records, damaged, total, nextCursor: next } = await list({ limit, cursor, deleted: inDeleted });
  if (withoutDeleted) return { records, damaged, total, nextCursor: next };
  const other = await list({ limit: 1, deleted: !inDeleted });
  const startsDeleted = !inDeleted && next === undefined && other.total > 0;
  return { records, damaged, total: total + other.total, nextCursor: startsDeleted ? DELETED_START : next };
}

/** The cursor of the first page of deleted checkpoints: a time after every deletion. */
const DELETED_START = encodeCursor("deleted_at", "9999-12-31T23:59:59.999Z", "");

async function listDeleted(store: CheckpointStore, limit: number, after: DeletedQuery["after"]) {
  const { records, damaged, total } = await store.listDeleted({ limit, after });
  return { checkpoints: records.map(({ record, deletedAt }): ListedCheckpoint => ({ ...record, deletedAt })), damaged, total };
}

function assertUnfiltered({ tags, createdFrom, createdBefore, context, text }: CheckpointFilter, offset: number): void {
  if (tags || context || text !== undefined || createdFrom !== undefined || createdBefore !== undefined || offset > 0)
    throw new CairnError(
      "invalid_input",
      "deleted: cannot be combined with tags, context, text, times and offset. Continue with next_cursor.",
    );
}
