import { CairnError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { PortPosition } from "./system.ts";

/** The default settings of a system. */
export const SYSTEM_DEFAULTS = {
  /** The write budget: one commit of a component's batch every 25 ms, which keeps receipts within 50 ms and leaves SQLite time for others. */
  commitsPerSecond: 40,
  snapshotEveryMs: 60_000,
  snapshotsKept: 10,
} as const;

/** Raises `invalid_input` unless the id is a portable file name, which it becomes. */
export function assertSystemId(systemId: string): void {
  if (typeof systemId !== "string" || systemId.length > LIMITS.systemIdChars || !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(systemId))
    throw new CairnError(
      "invalid_input",
      `system_id: must begin with a letter or digit and contain only letters, digits, ".", "_" and "-", at most ${LIMITS.systemIdChars} of them.`,
    );
}

export function systemNotFoundError(systemId: string): CairnError {
  return new CairnError("not_found", `There is no system "${systemId}". List them with: cairn system list`, {
    details: { kind: "system" },
  });
}

export function snapshotNotFoundError(id: string): CairnError {
  return new CairnError("not_found", `There is no snapshot ${id}. It never existed, or retention deleted it.`, {
    details: { kind: "snapshot" },
  });
}

export function snapshotTooLargeError(maxBytes: number): CairnError {
  return new CairnError("too_large", `The system's state exceeds the snapshot limit of ${maxBytes} bytes. Back up the database instead.`, {
    details: { kind: "snapshot", maxBytes },
  });
}

export function wrongOwnerError(place: string, owner: string | undefined, systemId: string): CairnError {
  return new CairnError(
    "conflict",
    `${place} belongs to the system "${owner}", not to "${systemId}". It was probably renamed by hand: rename it back.`,
    { details: { place } },
  );
}

/** Returns the position of a port that has received nothing. */
export function newPort(port: string, firstOffset: number): PortPosition {
  return { port, firstOffset, position: firstOffset - 1, highest: firstOffset - 1, prunedTo: firstOffset - 1 };
}

/** Compares texts by their UTF-8 bytes, as the databases sort them. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export const SYSTEM_SCHEMA_VERSION = "1.0.0";
