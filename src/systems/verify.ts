import { isDeepStrictEqual } from "node:util";
import { CairnError } from "../model/errors.ts";
import { sha256Hex } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import type { ComponentImage, SnapshotInfo, SnapshotPart } from "../model/system.ts";
import type { SnapshotStore, SystemStorage } from "../ports/system-store.ts";
import { decodeImage, snapshotChecksum, totalsOf } from "./image.ts";

/**
 * The verification levels of a snapshot; each includes the ones before. `count`: all parts exist. `integrity`: all parts can be decoded
 * and are valid. `checksum`: all bytes are unchanged. `full`: a trial restore results in the same state.
 */
export const VERIFY_LEVELS = ["count", "integrity", "checksum", "full"] as const;
/** How thoroughly a snapshot is verified; each level includes the ones before. */
export type VerifyLevel = (typeof VERIFY_LEVELS)[number];

/** The result of verifying one snapshot. */
export interface VerifyReport {
  readonly snapshotId: string;
  readonly createdAt: string;
  readonly level: VerifyLevel;
  readonly good: boolean;
  /** The problems, at most 100. */
  readonly problems: readonly string[];
}

export interface VerifiedSnapshot extends VerifyReport {
  /** The content of a valid snapshot. */
  readonly images: readonly ComponentImage[];
}

const PROBLEMS_MAX = 100;

/** Verifies a snapshot. `scratch` creates an empty storage in memory for the trial restore. */
export async function verifySnapshot(
  store: SnapshotStore,
  info: SnapshotInfo,
  level: VerifyLevel,
  scratch: () => Promise<SystemStorage>,
): Promise<VerifiedSnapshot> {
  const problems: string[] = [];
  const images: ComponentImage[] = [];
  const goesTo = (other: VerifyLevel) => VERIFY_LEVELS.indexOf(level) >= VERIFY_LEVELS.indexOf(other);
  if (!info.complete) problems.push("it was never finished");
  else {
    const parts = await readParts(store, info, problems);
    problems.push(...countProblems(info, parts));
    if (goesTo("integrity")) images.push(...(await readImages(info, parts, problems)));
    if (goesTo("checksum")) problems.push(...checksumProblems(info, parts));
    if (goesTo("full") && problems.length === 0) problems.push(...(await trialProblems(images, await scratch())));
  }
  const good = problems.length === 0;
  const { id: snapshotId, createdAt } = info;
  return { snapshotId, createdAt, level, good, problems: problems.slice(0, PROBLEMS_MAX), images: good ? images : [] };
}

/** Reads the parts. A part that the database cannot read is a problem of the snapshot, not an error. */
async function readParts(store: SnapshotStore, { id }: SnapshotInfo, problems: string[]): Promise<readonly SnapshotPart[]> {
  try {
    return await store.snapshotParts(id);
  } catch (error) {
    if (!(error instanceof CairnError && (error.details?.damaged || error.code === "not_found"))) throw error;
    problems.push(`its parts cannot be read: ${error.message}`);
    return [];
  }
}

function countProblems({ components, bytes }: SnapshotInfo, parts: readonly SnapshotPart[]): string[] {
  const found = parts.reduce((sum, { data }) => sum + data.byteLength, 0);
  if (parts.length !== components) return [`it has ${parts.length} of ${components} parts`];
  return found === bytes ? [] : [`its parts have ${found} bytes, not ${bytes}`];
}

async function readImages(info: SnapshotInfo, parts: readonly SnapshotPart[], problems: string[]): Promise<ComponentImage[]> {
  const images: ComponentImage[] = [];
  for (const part of parts)
    try {
      images.push(await decodeImage(part));
    } catch (error) {
      problems.push(`the part of "${part.component}" is damaged: ${(error as Error).message}`);
    }
  if (problems.length > 0) return images;
  const { messages, stateKeys } = totalsOf(images, parts);
  if (messages !== info.messages) problems.push(`it has ${messages} of ${info.messages} messages`);
  if (stateKeys !== info.stateKeys) problems.push(`it has ${stateKeys} of ${info.stateKeys} keys of state`);
  return images;
}

function checksumProblems(info: SnapshotInfo, parts: readonly SnapshotPart[]): string[] {
  const altered = parts.filter(({ data, checksum }) => sha256Hex(data) !== checksum);
  const problems = altered.map(({ component }) => `the part of "${component}" is not what was written`);
  if (snapshotChecksum(info, parts) !== info.checksum) problems.push("its checksum is another than when it was finished");
  return problems;
}

async function trialProblems(images: readonly ComponentImage[], storage: SystemStorage): Promise<string[]> {
  try {
    const trial = await storage.create("trial");
    await trial.restore(images, new Date(0).toISOString());
    const restored = await trial.collect({ maxBytes: LIMITS.systemSnapshotBytes });
    const same = isDeepStrictEqual(restored.map(comparable), images.map(comparable));
    return same ? [] : ["a trial restore gives another state"];
  } finally {
    await storage.close();
  }
}

/** Returns the fields that a restore must reproduce. Versions increase, and offsets up to the position count as received. */
function comparable({ component, ports, messages, state }: ComponentImage) {
  const bytes = (data: Uint8Array | null) => data && Buffer.from(data).toString("base64");
  return {
    component,
    ports: ports.map(({ prunedTo: _, ...port }) => port),
    messages: messages.map((message) => ({ ...message, data: bytes(message.data) })),
    state: state.map(([key, value]) => [key, bytes(value)]),
  };
}
