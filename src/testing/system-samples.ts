import type { PortOffsets, StoredMessage } from "../model/system.ts";
import type { ComponentChange, SystemStorage, SystemStore } from "../ports/system-store.ts";
import { bytes } from "./assertions.ts";

/** The cases of a system store by name. */
export type SystemCases = Readonly<Record<string, (store: SystemStore, storage: SystemStorage) => Promise<void>>>;

export const AT = "2026-01-01T00:00:00.000Z";
export const MAX = 100_000_000;

export function change(more: Partial<ComponentChange>): ComponentChange {
  return { component: "c", version: 0, at: AT, messages: [], ports: [port({})], state: [], ...more };
}

export function position(more: Partial<PortOffsets> = {}) {
  return { port: "p", firstOffset: 0, position: -1, highest: -1, prunedTo: -1, ...more };
}

export function port(more: Partial<PortOffsets> & { readonly aheadAdded?: readonly number[]; readonly closesGap?: boolean }) {
  return { aheadAdded: [], closesGap: false, ...position(more) };
}

export function offsets(more: Partial<PortOffsets>): PortOffsets {
  return { ahead: [], ...position(more) };
}

export function loadedPort(more: Partial<PortOffsets>, pending = 0) {
  return { ...offsets(more), pending };
}

export function message(offset: number, more: Partial<StoredMessage> = {}): StoredMessage {
  const base = { port: "p", id: `m${offset}`, offset, timestamp: 1_700_000_000.25, status: "done", attempts: 0, reason: null } as const;
  return { ...base, data: bytes(`data ${offset}`), ...more };
}

export function head({ data: _, ...rest }: StoredMessage) {
  return rest;
}
