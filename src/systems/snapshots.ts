import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { ComponentImage, SnapshotInfo, SnapshotMode, SnapshotPart } from "../model/system.ts";
import { snapshotNotFoundError } from "../model/system-rules.ts";
import type { SystemStorage, SystemStore } from "../ports/system-store.ts";
import { encodeImage, snapshotChecksum, totalsOf } from "./image.ts";
import { type VerifiedSnapshot, type VerifyLevel, type VerifyReport, verifySnapshot } from "./verify.ts";

/** The result of restoring a snapshot. */
export interface RestoreReport {
  readonly snapshotId: string;
  readonly createdAt: string;
  /** The position of each port: its source resends everything after this offset. */
  readonly ports: readonly { readonly component: string; readonly port: string; readonly position: number }[];
  /** Newer snapshots that could not be used, and why. */
  readonly skipped: readonly { readonly snapshotId: string; readonly problems: readonly string[] }[];
}

export interface Snapshots {
  take(mode: SnapshotMode): Promise<SnapshotInfo>;
  list(): Promise<readonly SnapshotInfo[]>;
  verify(options: { readonly snapshotId?: string | undefined; readonly level: VerifyLevel }): Promise<readonly VerifyReport[]>;
  /** Restores the given snapshot, or the newest valid one. */
  restore(options: { readonly snapshotId?: string | undefined }): Promise<RestoreReport>;
}

export interface SnapshotDeps {
  readonly store: () => Promise<SystemStore>;
  readonly scratch: () => Promise<SystemStorage>;
  readonly keep: number;
  readonly now: () => string;
  readonly newId: () => string;
  /** Runs `work` while all writers of this process are paused and flushed. */
  readonly whilePaused: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Milliseconds after which an incomplete snapshot counts as abandoned; before, another process may be writing it. */
const ABANDONED_AFTER_MS = 600_000;

export function snapshots({ store: open, scratch, keep, now, newId, whilePaused }: SnapshotDeps): Snapshots {
  async function find(store: SystemStore, id: string): Promise<SnapshotInfo> {
    const found = (await store.snapshots()).find((info) => info.id === id);
    if (!found) throw snapshotNotFoundError(id);
    return found;
  }

  /** Collects images: from one transaction for all components, or one for each. */
  async function collect(store: SystemStore, mode: SnapshotMode): Promise<readonly ComponentImage[]> {
    const maxBytes = LIMITS.systemSnapshotBytes;
    if (mode === "consistent") return whilePaused(() => store.collect({ maxBytes }));
    const images: ComponentImage[] = [];
    for (const { component } of await store.overview()) images.push(...(await store.collect({ components: [component], maxBytes })));
    return images;
  }

  /** Deletes snapshots beyond the retention. */
  async function retire(store: SystemStore): Promise<void> {
    const all = await store.snapshots();
    const surplus = all.filter(({ complete }) => complete).slice(keep);
    const abandonedBefore = Date.parse(now()) - ABANDONED_AFTER_MS;
    const abandoned = all.filter(({ complete, createdAt }) => !complete && Date.parse(createdAt) < abandonedBefore);
    for (const { id } of [...surplus, ...abandoned]) await store.deleteSnapshot(id);
  }

  async function newestGood(store: SystemStore): Promise<{ good: VerifiedSnapshot | undefined; skipped: RestoreReport["skipped"] }> {
    const skipped: { snapshotId: string; problems: readonly string[] }[] = [];
    for (const info of await store.snapshots()) {
      const verified = await verifySnapshot(store, info, "checksum", scratch);
      if (verified.good) return { good: verified, skipped };
      skipped.push({ snapshotId: info.id, problems: verified.problems });
    }
    return { good: undefined, skipped };
  }

  return {
    async take(mode) {
      const store = await open();
      const begun = { id: newId(), createdAt: now(), mode };
      await store.beginSnapshot(begun);
      let taken: SnapshotInfo;
      try {
        const images = await collect(store, mode);
        const parts: SnapshotPart[] = [];
        for (const image of images) {
          const part = await encodeImage(image);
          await store.addSnapshotPart(begun.id, part);
          parts.push(part);
        }
        const totals = totalsOf(images, parts);
        const checksum = snapshotChecksum(begun, parts);
        await store.completeSnapshot(begun.id, { ...totals, checksum });
        taken = { ...begun, ...totals, checksum, complete: true };
      } catch (error) {
        await store.deleteSnapshot(begun.id).catch(() => {}); // incomplete, so it is never restored
        throw error;
      }
      await retire(store);
      return taken;
    },

    async list() {
      return (await open()).snapshots();
    },

    async verify({ snapshotId, level }) {
      const store = await open();
      const chosen = snapshotId === undefined ? await store.snapshots() : [await find(store, snapshotId)];
      const reports: VerifyReport[] = [];
      for (const info of chosen) {
        const { images: _, ...report } = await verifySnapshot(store, info, level, scratch);
        reports.push(report);
      }
      return reports;
    },

    async restore({ snapshotId }) {
      const store = await open();
      const { good, skipped } =
        snapshotId === undefined
          ? await newestGood(store)
          : { good: await verifySnapshot(store, await find(store, snapshotId), "checksum", scratch), skipped: [] };
      if (!good)
        throw new CairnError("not_found", `The system "${store.systemId}" has no snapshot that can be used. Restore a backup instead.`, {
          details: { kind: "snapshot", skipped },
        });
      if (!good.good)
        throw new CairnError(
          "unavailable",
          `The snapshot ${snapshotId} cannot be used: ${good.problems.join("; ")}. Nothing was changed; restore another one.`,
          { details: { kind: "damaged", problems: good.problems } },
        );
      await whilePaused(() => store.restore(good.images, now()));
      return {
        snapshotId: good.snapshotId,
        createdAt: good.createdAt,
        ports: good.images.flatMap(({ component, ports }) => ports.map(({ port, position }) => ({ component, port, position }))),
        skipped,
      };
    },
  };
}
