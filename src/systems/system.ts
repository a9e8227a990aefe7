import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { ComponentOverview, SnapshotInfo, SnapshotMode } from "../model/system.ts";
import { assertSystemId } from "../model/system-rules.ts";
import type { SystemStorage, SystemStore } from "../ports/system-store.ts";
import { decodeState } from "../text/plain-data.ts";
import { assertStateKey, assertText } from "./effect.ts";
import { type Retention, type SystemOptions, settingsOf, whole } from "./options.ts";
import { type Port, type PruneOptions, port } from "./port.ts";
import { type RestoreReport, snapshots } from "./snapshots.ts";
import { VERIFY_LEVELS, type VerifyLevel, type VerifyReport } from "./verify.ts";
import { type ComponentWriter, componentWriter } from "./writer.ts";

/** The durable state of a system: the messages, offsets and values of its components. */
export interface System {
  readonly systemId: string;
  component(name: string): Component;
  /** Takes a snapshot now. `consistent` (default) pauses all components briefly, `per_component` none. */
  snapshot(options?: { readonly mode?: SnapshotMode }): Promise<SnapshotInfo>;
  /** Returns all snapshots, newest first, including incomplete ones. */
  snapshots(): Promise<readonly SnapshotInfo[]>;
  /** Verifies one snapshot or all; default level `checksum`. */
  verify(options?: { readonly snapshotId?: string; readonly level?: VerifyLevel }): Promise<readonly VerifyReport[]>;
  /** Restores the given snapshot, or the newest valid one. Sources then resend the messages after each position. */
  restore(options?: { readonly snapshotId?: string }): Promise<RestoreReport>;
  /** Deletes finished messages of all ports and returns their number; with `dryRun`, only counts them. */
  prune(retention: Retention, options?: PruneOptions): Promise<number>;
  /** Returns the counts and positions of all components and ports. */
  overview(): Promise<readonly ComponentOverview[]>;
  /** Closes the system after all received messages are durable. */
  close(): Promise<void>;
}

/** A component of a system. Its messages are processed one at a time, so that effects never conflict. */
export interface Component {
  readonly name: string;
  /** `firstOffset` applies to a new port: the first offset of its source; default 0. */
  port<Data = unknown>(name: string, options?: { readonly firstOffset?: number }): Port<Data>;
  /** Returns a value that effects stored. */
  get<Value = unknown>(key: string): Promise<Value | undefined>;
}

export interface SystemDeps {
  readonly systemId: string;
  /** Returns the store, opened at its first use. */
  readonly store: () => Promise<SystemStore>;
  /** An empty storage in memory, for trial restores. */
  readonly scratch: () => Promise<SystemStorage>;
  readonly onClose?: () => Promise<void>;
}

export function createSystem({ systemId, store, scratch, onClose }: SystemDeps, options: SystemOptions = {}): System {
  assertSystemId(systemId);
  const settings = settingsOf(options);
  const { now, newId, snapshotsKept: keep } = settings;
  const writers = new Map<string, ComponentWriter>();
  const background = new Set<Promise<unknown>>();
  let closed = false;

  function writerOf(component: string): ComponentWriter {
    let writer = writers.get(component);
    if (!writer) {
      if (writers.size === LIMITS.systemComponents)
        throw new CairnError("too_large", `One process uses at most ${LIMITS.systemComponents} components of a system.`);
      writer = componentWriter({ store, component, commitsPerSecond: settings.commitsPerSecond, now });
      writers.set(component, writer);
    }
    return writer;
  }

  /** Pauses all writers together, so that none receives messages from another one meanwhile. */
  async function whilePaused<T>(work: () => Promise<T>): Promise<T> {
    const paused = [...writers.values()];
    const still = Promise.all(paused.map((writer) => writer.pause()));
    try {
      await still;
      return await work();
    } finally {
      for (const writer of paused) writer.resume();
    }
  }

  const taken = snapshots({ store, scratch, keep, now, newId, whilePaused });

  function portOf<Data>(component: string, name: string, firstOffset = 0): Port<Data> {
    assertText("component", component, LIMITS.systemNameChars);
    assertText("port", name, LIMITS.systemNameChars);
    whole("firstOffset", firstOffset, 0, Number.MAX_SAFE_INTEGER - 1);
    return port<Data>({ component, port: name, firstOffset, store, writer: writerOf(component), settings });
  }

  async function prune(retention: Retention, pruneOptions?: PruneOptions): Promise<number> {
    let forgotten = 0;
    for (const { component, ports } of await (await store()).overview())
      for (const { port: name } of ports) forgotten += await portOf(component, name).prune(retention, pruneOptions);
    return forgotten;
  }

  let commitsThen = 0;
  const timer = repeatEvery(settings.snapshotEveryMs, background, settings.onProblem, async () => {
    const commits = [...writers.values()].reduce((sum, writer) => sum + writer.commits, 0);
    if (commits === commitsThen || !(await isDue())) return;
    await taken.take(settings.snapshotMode);
    commitsThen = commits;
    if (settings.retention) await prune(settings.retention);
  });

  /** Returns whether an automatic snapshot is due. Processes of one system share the interval. */
  async function isDue(): Promise<boolean> {
    const newest = (await taken.list()).find(({ complete }) => complete);
    return !newest || Date.parse(now()) - Date.parse(newest.createdAt) >= 0.9 * settings.snapshotEveryMs;
  }

  return {
    systemId,

    component(name) {
      assertText("component", name, LIMITS.systemNameChars);
      return {
        name,
        port: (portName, { firstOffset } = {}) => portOf(name, portName, firstOffset),
        async get<Value>(key: string) {
          assertStateKey(key);
          const [bytes] = await (await store()).state(name, [key]);
          return bytes && (decodeState(bytes) as Value);
        },
      };
    },

    async snapshot({ mode = "consistent" } = {}) {
      return taken.take(settingsOf({ snapshots: { mode } }).snapshotMode);
    },

    snapshots: () => taken.list(),

    async verify({ snapshotId, level = "checksum" } = {}) {
      if (!VERIFY_LEVELS.includes(level)) throw new CairnError("invalid_input", `level: one of ${VERIFY_LEVELS.join(", ")}.`);
      return taken.verify({ snapshotId, level });
    },

    restore: async ({ snapshotId } = {}) => taken.restore({ snapshotId }),

    prune,

    async overview() {
      return (await store()).overview();
    },

    async close() {
      if (closed) return;
      closed = true;
      clearInterval(timer);
      await Promise.all(background);
      await Promise.all([...writers.values()].map((writer) => writer.close()));
      await onClose?.();
    },
  };
}

/** Repeats work in the background, one at a time, without keeping the process alive. */
function repeatEvery(
  ms: number,
  background: Set<Promise<unknown>>,
  onProblem: (error: unknown) => void,
  work: () => Promise<void>,
): NodeJS.Timeout | undefined {
  if (ms === 0) return undefined;
  let running = false;
  return setInterval(() => {
    if (running) return;
    running = true;
    const ended = work()
      .catch(onProblem)
      .finally(() => {
        running = false;
        background.delete(ended);
      });
    background.add(ended);
  }, ms).unref();
}
