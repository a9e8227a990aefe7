import { setImmediate as nextTurn } from "node:timers/promises";
import type { Anchor } from "../model/anchor.ts";
import { LIMITS } from "../model/limits.ts";
import type { Storage } from "../ports/storage.ts";
import type { Redact } from "../text/redact.ts";
import { readAnchor, storedAnchor } from "./anchor-text.ts";
import { anchorToIndex } from "./anchor-to-index.ts";
import { type AnchoredText, recogniseAnchors } from "./recognise.ts";

export interface AnchorRequest extends AnchoredText {
  /** The project whose code index is read; absent or empty: none. */
  readonly projectPath?: string | undefined;
  /** Anchors that the caller gives instead of those in the texts. */
  readonly given?: readonly string[] | undefined;
}

/** Resolves names to the files and definitions of a code index, for a client that compares them with its working tree. */
export interface Anchors {
  /** Returns the anchors of each record. Optional names that are not found are left out. */
  resolve(
    input: { readonly projectPath: string; readonly records: readonly (readonly string[])[] },
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<{ readonly records: readonly (readonly Anchor[])[] }>;
}

/** Returns the anchors of a record that is about to be stored. Never fails: a record without anchors is better than none. */
export type AnchorRecord = (request: AnchorRequest) => Promise<readonly Anchor[]>;

export function anchors(anchorRecord: AnchorRecord): Anchors {
  return {
    async resolve({ projectPath, records }, { signal } = {}) {
      const resolved: (readonly Anchor[])[] = [];
      for (const given of records) {
        resolved.push(await anchorRecord({ projectPath, given, texts: [] }));
        await nextTurn(); // other calls run between two records
        signal?.throwIfAborted();
      }
      return { records: resolved };
    },
  };
}

export function recordAnchorer({ storage, redact }: { readonly storage: Storage; readonly redact: Redact }): AnchorRecord {
  return async ({ projectPath, given, ...text }) => {
    const candidates = given ? given.map((one) => readAnchor(redact(one).text)) : recogniseAnchors(text);
    if (candidates.length === 0) return [];
    try {
      const project = !projectPath ? undefined : await storage.find(projectPath);
      return await anchorToIndex(project?.code, candidates);
    } catch {
      return candidates
        .filter(({ optional }) => !optional)
        .slice(0, LIMITS.anchors)
        .map(storedAnchor); // the index is damaged or is being migrated
    }
  };
}
