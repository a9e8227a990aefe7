/** The status of a message. Only `done` messages may be deleted. */
export type MessageStatus = "pending" | "done" | "dead";

/** A stored message without its data. */
export interface MessageHead {
  readonly port: string;
  readonly id: string;
  readonly offset: number;
  /** When it was received, in seconds since 1970. */
  readonly timestamp: number;
  readonly status: MessageStatus;
  /** The number of failed attempts of its effect. */
  readonly attempts: number;
  /** Why the last attempt failed. */
  readonly reason: string | null;
}

export interface StoredMessage extends MessageHead {
  readonly data: Uint8Array | null;
}

/** The progress of a port. */
export interface PortPosition {
  readonly port: string;
  /** The first offset of the source. */
  readonly firstOffset: number;
  /** Every offset up to this one has been received. One less than `firstOffset` before the first. */
  readonly position: number;
  /** The highest offset received; there are gaps below it when it is above `position`. */
  readonly highest: number;
  /** Finished messages up to this offset may be deleted; a message at or below it counts as a duplicate. */
  readonly prunedTo: number;
}

export interface PortOffsets extends PortPosition {
  /** The offsets above `position` that were received. */
  readonly ahead: readonly number[];
}

/** The complete state of a component at one point in time. */
export interface ComponentImage {
  readonly component: string;
  readonly version: number;
  readonly ports: readonly PortOffsets[];
  /** The messages that are not done, and those above the position of their port. */
  readonly messages: readonly StoredMessage[];
  readonly state: readonly (readonly [key: string, value: Uint8Array])[];
}

/** `consistent`: one point in time for all components. `per_component`: one for each component, without pausing writes. */
export type SnapshotMode = "consistent" | "per_component";

export interface SnapshotTotals {
  readonly components: number;
  readonly messages: number;
  readonly stateKeys: number;
  readonly bytes: number;
}

/** A snapshot without its content. */
export interface SnapshotInfo extends SnapshotTotals {
  readonly id: string;
  readonly createdAt: string;
  readonly mode: SnapshotMode;
  /** Set last, together with the checksum. An incomplete snapshot is never restored. */
  readonly complete: boolean;
  readonly checksum: string | null;
}

/** The part of a snapshot that contains one component. */
export interface SnapshotPart {
  readonly component: string;
  readonly checksum: string;
  readonly data: Uint8Array;
}

/** The state of one component and its ports. */
export interface ComponentOverview {
  readonly component: string;
  /** Counts the commits of this component by all processes. It never decreases. */
  readonly version: number;
  readonly updatedAt: string;
  readonly stateKeys: number;
  readonly stateBytes: number;
  readonly ports: readonly PortOverview[];
}

/** The position and the counts of one port. */
export interface PortOverview extends PortPosition {
  /** The number of offsets received above `position`. */
  readonly ahead: number;
  readonly pending: number;
  readonly done: number;
  readonly dead: number;
}
