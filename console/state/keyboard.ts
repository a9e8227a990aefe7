import { useEffect, useRef } from "preact/hooks";

export interface Shortcut {
  /** As the list of shortcuts shows it: `j`, `g t`, `Ctrl-K`. */
  readonly keys: string;
  readonly text: string;
  readonly run: () => void;
}

const active = new Set<{ readonly current: readonly Shortcut[] }>();
/** The first key of a pair such as `g t`, while the second is awaited. */
let pending = "";
let pendingTimer: ReturnType<typeof setTimeout> | undefined;
const PAIR_MS = 1_200;

/** Returns the shortcuts that work now, for the list that `?` shows. */
export function activeShortcuts(): readonly Shortcut[] {
  return [...active].flatMap(({ current }) => current);
}

/** Adds shortcuts while a component is shown. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const ref = useRef(shortcuts);
  ref.current = shortcuts;
  useEffect(() => {
    active.add(ref);
    return () => {
      active.delete(ref);
    };
  }, []);
}

addEventListener("keydown", (event) => {
  const keys = keysOf(event);
  if (keys === undefined) return;
  const found = activeShortcuts().findLast((shortcut) => shortcut.keys === (pending ? `${pending} ${keys}` : keys));
  clearTimeout(pendingTimer);
  if (found) {
    pending = "";
    event.preventDefault();
    return found.run();
  }
  pending = !pending && activeShortcuts().some((shortcut) => shortcut.keys.startsWith(`${keys} `)) ? keys : "";
  pendingTimer = setTimeout(() => {
    pending = "";
  }, PAIR_MS);
});

/** Returns the name of a key press, or `undefined` if it belongs to a field, a dialog or the browser. */
function keysOf(event: KeyboardEvent): string | undefined {
  if (event.defaultPrevented || event.altKey || event.isComposing) return undefined;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return "Ctrl-K";
  if (event.ctrlKey || event.metaKey || event.key.length !== 1) return undefined;
  const target = event.target as HTMLElement;
  if (target.closest("input, textarea, select, [contenteditable], dialog")) return undefined;
  return event.key;
}
