import { CairnError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { PortPosition } from "./system.ts";

/** How a system behaves unless it is configured otherwise. */
export const SYSTEM_DEFAULTS = {
  /** The write budget: one group commit every 25 ms, which keeps receipts within 50 ms and leaves SQLite time for others. */
  commitsPerSecond: 40,
  snapshotEveryMs: 60_000,
  snapshotsKept: 10,
} as const;

/** A system's id is the name of its file on every kind of disk, so it is plain. */
export function assertSystemId(systemId: string): void {
  if (typeof systemId !== "string" || systemId.length > LIMITS.systemIdChars || !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(systemId))
    throw new CairnError(
      "invalid_input",
      `system_id: must begin with a letter or digit and hold only letters, digits, ".", "_" and "-", at most ${LIMITS.systemIdChars} of them.`,
    );
}

export function systemNotFoundError(systemId: string): CairnError {
  return new CairnError("not_found", `There is no system "${systemId}". "cairn system list" shows those there are.`, {
    details: { kind: "system" },
  });
}

export function snapshotNotFoundError(id: string): CairnError {
  return new CairnError("not_found", `There is no snapshot ${id}. It was never taken, or retention removed it.`, {
    details: { kind: "snapshot" },
  });
}

export function snapshotTooLargeError(maxBytes: number): CairnError {
  return new CairnError(
    "too_large",
    `The system's state has more than ${maxBytes} bytes, which is more than a snapshot holds. Back the database up instead.`,
    { details: { kind: "snapshot", maxBytes } },
  );
}

export function wrongOwnerError(place: string, owner: string | undefined, systemId: string): CairnError {
  return new CairnError(
    "conflict",
    `${place} belongs to the system "${owner}", not to "${systemId}". It was probably renamed by hand: rename it back.`,
    { details: { place } },
  );
}

/** A port that has received nothing. */
export function newPort(port: string, firstOffset: number): PortPosition {
  return { port, firstOffset, position: firstOffset - 1, highest: firstOffset - 1, prunedTo: firstOffset - 1 };
}

/** Texts in the order of their UTF-8 bytes, as the databases sort them. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export const SYSTEM_SCHEMA_VERSION = "1.0.0";
