import { type FSWatcher, watch } from "node:fs";
import { isBinaryName, isGeneratedName } from "../files/generated.ts";
import type { IgnoreRules } from "../files/ignore-rules.ts";

/** Tells that something changed in folders, not what: whoever hears it looks for himself. */
export interface FolderWatch {
  /** Watches one more folder, if there is room. */
  add(folder: string, rules: IgnoreRules): void;
  /** Lets go of every folder that is not among these. */
  keep(folders: ReadonlySet<string>): void;
  /** Some folders could not be watched, so that only looking shows what changed in them. */
  readonly incomplete: boolean;
  close(): void;
}

export interface FolderWatchOptions {
  readonly onChange: () => void;
  /** Systems give a user some thousands of watches, for all programs together. */
  readonly maxFolders?: number;
}

const MAX_FOLDERS = 4_000;

/**
 * One watch for each folder that a walk enters. Node's own recursive watch would watch every file on Linux, ignored ones too, and a
 * flood of events would have to be kept; here a thousand events are one remark.
 */
export function folderWatch({ onChange, maxFolders = MAX_FOLDERS }: FolderWatchOptions): FolderWatch {
  const watched = new Map<string, { readonly watcher: FSWatcher; rules: IgnoreRules }>();
  let incomplete = false;

  const drop = (folder: string) => {
    watched.get(folder)?.watcher.close();
    watched.delete(folder);
  };
  return {
    add(folder, rules) {
      const known = watched.get(folder);
      if (known) {
        known.rules = rules;
        return;
      }
      if (watched.size >= maxFolders) {
        incomplete = true;
        return;
      }
      try {
        const watcher = watch(folder, { persistent: false }, (_event, name) => {
          const held = watched.get(folder);
          if (held && (name === null || matters(name, held.rules))) onChange();
        });
        watcher.on("error", () => {
          drop(folder); // deleted, or the system takes its watch back
          onChange();
        });
        watched.set(folder, { watcher, rules });
      } catch (error) {
        // No watches left, or the folder has gone since; the second is noticed by its parent.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") incomplete = true;
      }
    },
    keep(folders) {
      for (const folder of watched.keys()) if (!folders.has(folder)) drop(folder);
      if (folders.size <= watched.size) incomplete = false;
    },
    get incomplete() {
      return incomplete;
    },
    close() {
      for (const folder of watched.keys()) drop(folder);
    },
  };
}

/** A log that is written all the time must not cause a look all the time. */
function matters(name: string, rules: IgnoreRules): boolean {
  if (name === ".git" || isBinaryName(name) || isGeneratedName(name)) return false;
  return !rules.ignores(name, false) || !rules.ignores(name, true);
}
