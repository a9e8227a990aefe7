import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { CairnError } from "../model/errors.ts";
import { framedHash, sha256Hex } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import type { ComponentImage, PortOffsets, SnapshotInfo, SnapshotPart, SnapshotTotals, StoredMessage } from "../model/system.ts";
import { decodeState, encodeText } from "../text/plain-data.ts";

/** Encodes an image of a component as a part of a snapshot: plain data, compressed. */
export async function encodeImage(image: ComponentImage): Promise<SnapshotPart> {
  const data = await promisify(gzip)(Buffer.from(encodeText(image), "utf8"), { level: 1 });
  return { component: image.component, checksum: sha256Hex(data), data };
}

/** Decodes a part; throws with the problem if it does not contain a valid image. */
export async function decodeImage({ component, data }: SnapshotPart): Promise<ComponentImage> {
  // Base64 and field names make the text longer than the collected data.
  const text = await promisify(gunzip)(data, { maxOutputLength: 2 * LIMITS.systemSnapshotBytes });
  const image = decodeState(text);
  if (!isImage(image)) throw new CairnError("unavailable", "it holds something else than a component");
  if (image.component !== component) throw new CairnError("unavailable", `it holds the component "${image.component}"`);
  return image;
}

/** Returns the checksum of a snapshot over its metadata and its parts. */
export function snapshotChecksum(info: Pick<SnapshotInfo, "id" | "mode" | "createdAt">, parts: readonly SnapshotPart[]): string {
  return framedHash(info.id, info.mode, info.createdAt, ...parts.flatMap(({ component, checksum }) => [component, checksum]));
}

export function totalsOf(images: readonly ComponentImage[], parts: readonly SnapshotPart[]): SnapshotTotals {
  const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
  return {
    components: images.length,
    messages: sum(images.map(({ messages }) => messages.length)),
    stateKeys: sum(images.map(({ state }) => state.length)),
    bytes: sum(parts.map(({ data }) => data.byteLength)),
  };
}

function isImage(value: unknown): value is ComponentImage {
  if (!isRecord(value)) return false;
  const { component, version, ports, messages, state } = value;
  return (
    typeof component === "string" &&
    isCount(version) &&
    isListOf(ports, isPort) &&
    isListOf(messages, (message): message is StoredMessage => isMessage(message) && ports.some(({ port }) => port === message.port)) &&
    isListOf(state, isEntry)
  );
}

/** Validates positions: a wrong one would make new messages count as duplicates. */
function isPort(value: unknown): value is PortOffsets {
  if (!isRecord(value)) return false;
  const { port, firstOffset, position, highest, prunedTo, ahead } = value;
  if (typeof port !== "string" || !isCount(firstOffset) || !isOffset(position) || !isOffset(highest) || !isOffset(prunedTo)) return false;
  const ordered = firstOffset - 1 <= prunedTo && prunedTo <= position && position <= highest;
  return ordered && isListOf(ahead, (offset): offset is number => isOffset(offset) && offset > position + 1 && offset <= highest);
}

function isMessage(value: unknown): value is StoredMessage {
  if (!isRecord(value)) return false;
  const { port, id, offset, timestamp, status, attempts, reason, data } = value;
  return (
    typeof port === "string" &&
    typeof id === "string" &&
    isCount(offset) &&
    typeof timestamp === "number" &&
    (status === "pending" || status === "done" || status === "dead") &&
    isCount(attempts) &&
    (reason === null || typeof reason === "string") &&
    (data === null || data instanceof Uint8Array)
  );
}

function isEntry(value: unknown): value is readonly [string, Uint8Array] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && value[1] instanceof Uint8Array;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isListOf<Item>(value: unknown, is: (item: unknown) => item is Item): value is readonly Item[] {
  return Array.isArray(value) && value.every(is);
}

function isOffset(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= -1;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
