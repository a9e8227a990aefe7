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
  /** New ones are stored whole; of those that are there the status, attempts and reason change. */
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

/**
 * One system's state. Every verb is atomic, done means durable, and bytes are copied in and out. Any number of processes may
 * use a system at once: a component changes by `commit` only, which counts its version up.
 */
export interface SystemStore {
  readonly systemId: string;
  /** Applied to every message and value before it is saved, where the store's owner wants no secrets in states. */
  readonly redactState?: ((value: unknown) => unknown) | undefined;

  /** The component's version with the messages asked for, all of one moment. */
  load(component: string, keys: readonly MessageKey[], knownVersion?: number): Promise<LoadedComponent>;
  /** The values of these keys, in the order asked. */
  state(component: string, keys: readonly string[]): Promise<(Uint8Array | undefined)[]>;
  /** All of the change or nothing. False, and nothing, when the version is no longer the newest. */
  commit(change: ComponentChange): Promise<boolean>;

  /** Messages in the order of component, port and offset. */
  messages(query: MessageQuery): Promise<readonly ListedMessage[]>;
  /** The lowest offset among the messages of a port received at or after this time (seconds since 1970). */
  firstSince(component: string, port: string, timestamp: number): Promise<number | undefined>;
  /** Removes at most so many finished messages up to this offset, and never above the port's `prunedTo`. Says how many went. */
  sweep(component: string, port: string, options: { readonly upTo: number; readonly limit: number }): Promise<number>;
  overview(): Promise<readonly ComponentOverview[]>;

  /** Everything of these components, or of all, at one moment. Raises `too_large` beyond so many bytes. */
  collect(options: { readonly components?: readonly string[]; readonly maxBytes: number }): Promise<readonly ComponentImage[]>;
  /**
   * Puts every component back to its image; those without one become empty. Messages at or below an image's position count as
   * seen. All versions count up, so that whoever worked from the state before starts over.
   */
  restore(images: readonly ComponentImage[], at: string): Promise<void>;

  beginSnapshot(snapshot: { readonly id: string; readonly createdAt: string; readonly mode: SnapshotMode }): Promise<void>;
  addSnapshotPart(snapshotId: string, part: SnapshotPart): Promise<void>;
  /** Sets the mark. Raises `not_found` when the snapshot was removed meanwhile. */
  completeSnapshot(snapshotId: string, completion: SnapshotTotals & { readonly checksum: string }): Promise<void>;
  /** Newest first, the unfinished ones too. */
  snapshots(): Promise<readonly SnapshotInfo[]>;
  /** In the order of their components. */
  snapshotParts(snapshotId: string): Promise<readonly SnapshotPart[]>;
  deleteSnapshot(snapshotId: string): Promise<void>;
}
