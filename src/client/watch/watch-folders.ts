import { type FSWatcher, watch } from "node:fs";
import { isBinaryName, isGeneratedName } from "../files/generated.ts";
import type { IgnoreRules } from "../files/ignore-rules.ts";

/** Reports that something changed in the watched folders, but not what: the receiver walks the tree. */
export interface FolderWatch {
  /** Watches one more folder, up to the limit. */
  add(folder: string, rules: IgnoreRules): void;
  /** Stops watching all other folders. */
  retain(folders: ReadonlySet<string>): void;
  /** True if some folders could not be watched: changes in them are found only by walking. */
  readonly incomplete: boolean;
  close(): void;
}

export interface FolderWatchOptions {
  readonly onChange: () => void;
  /** Systems limit the watches of a user to some thousands, for all programs together. */
  readonly maxFolders?: number;
}

const MAX_FOLDERS = 4_000;

/**
 * Watches each folder that a walk enters. The recursive watch of Node would watch every file on Linux, including ignored ones, and would
 * queue a flood of events; here a thousand events are one notification.
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
          if (held && (name === null || isRelevant(name, held.rules))) onChange();
        });
        watcher.on("error", () => {
          drop(folder); // deleted, or the system ended the watch
          onChange();
        });
        watched.set(folder, { watcher, rules });
      } catch (error) {
        // No watches left, or the folder was deleted; the watch of its parent reports the latter.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") incomplete = true;
      }
    },
    retain(folders) {
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

/** Returns whether a change of this entry can change the index. A log that is written constantly must not cause constant walks. */
function isRelevant(name: string, rules: IgnoreRules): boolean {
  if (name === ".git" || isBinaryName(name) || isGeneratedName(name)) return false;
  return !rules.ignores(name, false) || !rules.ignores(name, true);
}
