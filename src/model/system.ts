/** How far a message has come. Only `done` ones may be forgotten. */
export type MessageStatus = "pending" | "done" | "dead";

/** A message of an inbox as it is kept, without its data. */
export interface MessageHead {
  readonly port: string;
  readonly id: string;
  readonly offset: number;
  /** When it was received, in seconds since 1970. */
  readonly timestamp: number;
  readonly status: MessageStatus;
  /** How often its effect was tried and failed. */
  readonly attempts: number;
  /** Why the last try failed. */
  readonly reason: string | null;
}

export interface StoredMessage extends MessageHead {
  readonly data: Uint8Array | null;
}

/** How far a port has come. */
export interface PortPosition {
  readonly port: string;
  /** Where the source begins to count. */
  readonly firstOffset: number;
  /** Every offset up to this one has been received. One less than `firstOffset` before the first. */
  readonly position: number;
  /** The highest offset received; there are gaps below it when it is above `position`. */
  readonly highest: number;
  /** Up to this offset finished messages are forgotten: whatever comes again from there has been seen. */
  readonly prunedTo: number;
}

export interface PortOffsets extends PortPosition {
  /** The offsets above `position` that were received. */
  readonly ahead: readonly number[];
}

/** Everything that a component needs to continue from a moment. */
export interface ComponentImage {
  readonly component: string;
  readonly version: number;
  readonly ports: readonly PortOffsets[];
  /** The messages that are not done, and those above the position of their port. */
  readonly messages: readonly StoredMessage[];
  readonly state: readonly (readonly [key: string, value: Uint8Array])[];
}

/** `consistent`: one moment for all components. `per_component`: each its own moment, and nothing is held up. */
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
  /** The mark that is set last, together with the checksum. */
  readonly complete: boolean;
  readonly checksum: string | null;
}

/** One component's share of a snapshot. */
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
  /** How many offsets above `position` were received. */
  readonly ahead: number;
  readonly pending: number;
  readonly done: number;
  readonly dead: number;
}
