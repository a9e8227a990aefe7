import type {
  ComponentImage,
  ComponentOverview,
  MessageHead,
  MessageStatus,
  PortOffsets,
  PortPosition,
  SnapshotInfo,
  SnapshotMode,
  SnapshotPart,
  SnapshotTotals,
  StoredMessage,
} from "../model/system.ts";

/** All systems of one storage: a folder of files, or a PostgreSQL database. */
export interface SystemStorage {
  /** Opens the store of a system and creates it if necessary. */
  create(systemId: string): Promise<SystemStore>;
  /** Returns the store of a system; `undefined` if it does not exist. */
  find(systemId: string): Promise<SystemStore | undefined>;
  /** Returns the ids of all systems, sorted. */
  systems(): Promise<readonly string[]>;
  /** Returns the file or schema of a system, for messages. */
  location(systemId: string): string;
  /** Returns the size on disk; `undefined` if unknown. */
  sizeBytes(systemId: string): Promise<number | undefined>;
  close(): Promise<void>;
}

/** Identifies a message by its id or by its offset. */
export type MessageKey = { readonly port: string; readonly id: string } | { readonly port: string; readonly offset: number };

export interface LoadedPort extends PortOffsets {
  /** The number of messages that wait for an effect. */
  readonly pending: number;
}

export interface LoadedComponent {
  /** 0 for a new component. */
  readonly version: number;
  /** Absent if the version equals `knownVersion`. */
  readonly ports?: readonly LoadedPort[] | undefined;
  /** In the order requested. */
  readonly messages: readonly (MessageHead | undefined)[];
}

/** All changes of one commit. Optimistic: applied only if `version` is still current. */
export interface ComponentChange {
  readonly component: string;
  readonly version: number;
  readonly at: string;
  /** New messages are stored in full; existing ones change status, attempts and reason. */
  readonly messages: readonly StoredMessage[];
  readonly ports: readonly PortChange[];
  /** `null` removes the key. */
  readonly state: readonly (readonly [key: string, value: Uint8Array | null])[];
}

export interface PortChange extends PortPosition {
  /** Offsets received above `position`. */
  readonly aheadAdded: readonly number[];
  /** True if offsets that were ahead are now at or below `position` and can be deleted. */
  readonly closesGap: boolean;
}

export interface MessageQuery {
  readonly component?: string | undefined;
  readonly port?: string | undefined;
  readonly status: MessageStatus;
  readonly after?: { readonly component: string; readonly port: string; readonly offset: number } | undefined;
  readonly limit: number;
}

export interface ListedMessage extends StoredMessage {
  readonly component: string;
}

/** The components of a system: messages, offsets and state. A component changes by `commit` only, which increments its version. */
export interface ComponentStore {
  /** Returns the component's version with the requested messages, read in one transaction. */
  load(component: string, keys: readonly MessageKey[], knownVersion?: number): Promise<LoadedComponent>;
  /** Returns the values of these keys, in the order requested. */
  state(component: string, keys: readonly string[]): Promise<(Uint8Array | undefined)[]>;
  /** Applies the whole change, or returns false and changes nothing if the version is no longer current. */
  commit(change: ComponentChange): Promise<boolean>;
  /** Returns messages by component, port and offset. */
  messages(query: MessageQuery): Promise<readonly ListedMessage[]>;
  /** Returns the lowest offset of a port's messages received at or after this time (seconds since 1970). */
  firstSince(component: string, port: string, timestamp: number): Promise<number | undefined>;
  /** Deletes up to `limit` finished messages up to this offset, never above the port's `prunedTo`, and returns their number. */
  sweep(component: string, port: string, options: { readonly upTo: number; readonly limit: number }): Promise<number>;
  overview(): Promise<readonly ComponentOverview[]>;
}

/** The snapshots of a system. */
export interface SnapshotStore {
  /** Returns everything of these components, or of all, read in one transaction. Raises `too_large` beyond `maxBytes`. */
  collect(options: { readonly components?: readonly string[]; readonly maxBytes: number }): Promise<readonly ComponentImage[]>;
  /**
   * Replaces every component by its image; a component without an image becomes empty. Messages at or below an image's position count
   * as seen. All versions increase, so that a commit based on the previous state is refused.
   */
  restore(images: readonly ComponentImage[], at: string): Promise<void>;
  beginSnapshot(snapshot: { readonly id: string; readonly createdAt: string; readonly mode: SnapshotMode }): Promise<void>;
  addSnapshotPart(snapshotId: string, part: SnapshotPart): Promise<void>;
  /** Marks the snapshot complete. Raises `not_found` when it was deleted meanwhile. */
  completeSnapshot(snapshotId: string, completion: SnapshotTotals & { readonly checksum: string }): Promise<void>;
  /** Returns all snapshots, newest first, incomplete ones included. */
  snapshots(): Promise<readonly SnapshotInfo[]>;
  /** Returns the parts by component. */
  snapshotParts(snapshotId: string): Promise<readonly SnapshotPart[]>;
  deleteSnapshot(snapshotId: string): Promise<void>;
}

/**
 * The state of one system. Every verb is atomic, a resolved promise means durable, and bytes are copied in and out. Any number of
 * processes may use a system at the same time.
 */
export interface SystemStore extends ComponentStore, SnapshotStore {
  readonly systemId: string;
  /** Removes secrets from a value. Absent unless `redaction.state` is set. The caller applies it to messages and values before it saves. */
  readonly redactState?: ((value: unknown) => unknown) | undefined;
}
