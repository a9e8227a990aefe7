import { CairnError } from "../model/errors.ts";
import { type Clock, newId, systemClock } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import type { SnapshotMode } from "../model/system.ts";
import { SYSTEM_DEFAULTS } from "../model/system-rules.ts";

/** The settings of a system. All have defaults. */
export interface SystemOptions {
  /** The write budget: commits per second of each component in this process. Faster messages are batched, never dropped. Default 40. */
  readonly commitsPerSecond?: number | undefined;
  /** The number of attempts before a message becomes a dead letter; default 5. */
  readonly maxAttempts?: number | undefined;
  /** The time limit of one effect; default 30 s. */
  readonly effectTimeoutMs?: number | undefined;
  readonly snapshots?:
    | {
        /** The interval of automatic snapshots, taken only after changes; 0 disables them. Default 60 s. */
        readonly everyMs?: number | undefined;
        /** The number of snapshots to keep; default 10. */
        readonly keep?: number | undefined;
        /** The mode of automatic snapshots; default `consistent`. */
        readonly mode?: SnapshotMode | undefined;
      }
    | undefined;
  /** Deletes finished messages after each automatic snapshot; default: none. */
  readonly retention?: Retention | undefined;
  /** Called when a snapshot or the retention fails in the background; default: a process warning. */
  readonly onProblem?: ((error: unknown) => void) | undefined;
  readonly now?: Clock | undefined;
  readonly newId?: (() => string) | undefined;
}

/** Selects the finished messages to delete. A message is deleted only if both rules allow it, and never above the position of its port. */
export interface Retention {
  /** Keeps the newest N offsets of each port. */
  readonly keepLast?: number | undefined;
  /** Deletes only messages received longer ago. */
  readonly olderThanMs?: number | undefined;
}

export interface Settings {
  readonly commitsPerSecond: number;
  readonly maxAttempts: number;
  readonly effectTimeoutMs: number;
  /** 0 disables automatic snapshots. */
  readonly snapshotEveryMs: number;
  readonly snapshotsKept: number;
  readonly snapshotMode: SnapshotMode;
  readonly retention: Retention | undefined;
  readonly onProblem: (error: unknown) => void;
  readonly now: Clock;
  readonly newId: () => string;
}

export function settingsOf(options: SystemOptions): Settings {
  const {
    snapshots: { everyMs = SYSTEM_DEFAULTS.snapshotEveryMs, keep = SYSTEM_DEFAULTS.snapshotsKept, mode = "consistent" } = {},
    retention,
  } = options;
  if (mode !== "consistent" && mode !== "per_component")
    throw new CairnError("invalid_input", 'snapshots.mode: use "consistent" or "per_component".');
  if (retention) assertRetention(retention);
  return {
    commitsPerSecond: inRange("commitsPerSecond", options.commitsPerSecond ?? SYSTEM_DEFAULTS.commitsPerSecond, 0.01, 100_000),
    maxAttempts: whole("maxAttempts", options.maxAttempts ?? 5, 1, LIMITS.systemAttempts),
    effectTimeoutMs: inRange("effectTimeoutMs", options.effectTimeoutMs ?? LIMITS.systemEffectTimeoutMs, 1, 3_600_000),
    snapshotEveryMs: everyMs === 0 ? 0 : inRange("snapshots.everyMs", everyMs, 10, 86_400_000),
    snapshotsKept: whole("snapshots.keep", keep, 1, LIMITS.systemSnapshotsKept),
    snapshotMode: mode,
    retention,
    onProblem: options.onProblem ?? ((error) => process.emitWarning(error as Error)),
    now: options.now ?? systemClock,
    newId: options.newId ?? newId,
  };
}

export function assertRetention({ keepLast, olderThanMs }: Retention): void {
  if (keepLast === undefined && olderThanMs === undefined)
    throw new CairnError("invalid_input", "Give the number of offsets to keep, an age, or both.");
  if (keepLast !== undefined) whole("keepLast", keepLast, 0, Number.MAX_SAFE_INTEGER);
  if (olderThanMs !== undefined) inRange("olderThanMs", olderThanMs, 0, Number.MAX_SAFE_INTEGER);
}

function inRange(name: string, value: number, min: number, max: number): number {
  if (typeof value !== "number" || !(value >= min && value <= max))
    throw new CairnError("invalid_input", `${name}: must be a number from ${min} to ${max}.`);
  return value;
}

export function whole(name: string, value: number, min: number, max: number): number {
  if (!Number.isSafeInteger(value)) throw new CairnError("invalid_input", `${name}: must be a whole number.`);
  return inRange(name, value, min, max);
}
