import { openSystemStorage, type SystemStorageOptions } from "./open/open-system-storage.ts";
import type { SystemStorage } from "./ports/system-store.ts";
import { memorySystemStorage } from "./stores/memory/systems.ts";
import type { SystemOptions } from "./systems/options.ts";
import { createSystem, type System } from "./systems/system.ts";

/** The public entry `cairn-memory/systems`: messages received exactly once, offsets, state and snapshots that survive their process. */
export { CairnError } from "./model/errors.ts";
export type {
  ComponentOverview,
  MessageStatus,
  PortOverview,
  PortPosition,
  SnapshotInfo,
  SnapshotMode,
} from "./model/system.ts";
export { openSystemStorage, type SystemStorageOptions } from "./open/open-system-storage.ts";
export type { SystemStorage, SystemStore } from "./ports/system-store.ts";
export type { Delivery, Effect, EffectState } from "./systems/effect.ts";
export { type Handlers, type Inbox, inboxes } from "./systems/inboxes.ts";
export type { Retention, SystemOptions } from "./systems/options.ts";
export type { Message, PageOptions, PendingMessage, Port, WorkReport } from "./systems/port.ts";
export type { RestoreReport } from "./systems/snapshots.ts";
export type { Component, System } from "./systems/system.ts";
export type { VerifyLevel, VerifyReport } from "./systems/verify.ts";
export type { Outcome, Receipt } from "./systems/writes.ts";

/** Options of `system`. */
export interface OpenSystemOptions extends SystemOptions {
  /** Letters, digits, ".", "_" and "-": it names the system's file. */
  readonly systemId: string;
  /** The storage; default: SQLite files in the state folder. Closing the system does not close a given storage. */
  readonly storage?: SystemStorageOptions | SystemStorage | undefined;
}

/** Opens a system. The database is opened or created on first use. */
export function system({ systemId, storage = { storage: "sqlite" }, ...options }: OpenSystemOptions): System {
  const own = "create" in storage ? storage : undefined;
  let opening: Promise<SystemStorage> | undefined;
  const open = (): Promise<SystemStorage> => {
    opening ??= own ? Promise.resolve(own) : openSystemStorage(storage as SystemStorageOptions);
    return opening;
  };
  return createSystem(
    {
      systemId,
      store: async () => (await open()).create(systemId),
      scratch: async () => memorySystemStorage(),
      async onClose() {
        if (!own) await (await opening)?.close();
      },
    },
    options,
  );
}
