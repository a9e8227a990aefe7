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

/** All systems of one place: a folder of files, or a PostgreSQL database. */
export interface SystemStorage {
  /** The store of that system, made if it is not there. */
  create(systemId: string): Promise<SystemStore>;
  /** `undefined` when there is no such system. */
  find(systemId: string): Promise<SystemStore | undefined>;
  /** The ids of all systems, in order. */
  systems(): Promise<readonly string[]>;
  /** The file or schema, for people. */
  location(systemId: string): string;
  /** What it takes on disk, or `undefined` where that is not known. */
  sizeBytes(systemId: string): Promise<number | undefined>;
  close(): Promise<void>;
}

/** Which message is meant: the one with this id, or the one with this offset. */
export type MessageKey = { readonly port: string; readonly id: string } | { readonly port: string; readonly offset: number };

export interface LoadedPort extends PortOffsets {
  /** How many messages wait for an effect. */
  readonly pending: number;
}

export interface LoadedComponent {
  /** 0 when there is no such component yet. */
  readonly version: number;
  /** Left out when the version is the one that the caller knows. */
  readonly ports?: readonly LoadedPort[] | undefined;
  /** In the order asked. */
  readonly messages: readonly (MessageHead | undefined)[];
}

/** All that one commit changes. It was worked out from a version, and counts only if that is still the newest. */
export interface ComponentChange {
  readonly component: string;
  readonly version: number;
  readonly at: string;
  /** New ones are stored whole; of existing ones the status, attempts and reason change. */
  readonly messages: readonly StoredMessage[];
  readonly ports: readonly PortChange[];
  /** `null` removes the key. */
  readonly state: readonly (readonly [key: string, value: Uint8Array | null])[];
}

export interface PortChange extends PortPosition {
  /** Offsets received above `position`. */
  readonly aheadAdded: readonly number[];
  /** Offsets that were ahead are now at or below `position`, and are to be forgotten. */
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
  /** Applies the whole change, or returns false and changes nothing when the version is no longer the newest. */
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
  /** Applied to every message and value before it is saved, so that secrets are not stored. */
  readonly redactState?: ((value: unknown) => unknown) | undefined;
}
