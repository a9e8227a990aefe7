import { signal } from "@preact/signals";

/** The way back from an action, and the message when it was taken. */
export interface Undo {
  readonly run: () => Promise<unknown>;
  readonly done: string;
}

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
  readonly undo?: Undo | undefined;
}

export const toasts = signal<readonly Toast[]>([]);

/** Milliseconds that a message stays: longer if it can be undone. */
const STAY_MS = 4_000;
const STAY_UNDO_MS = 12_000;
let lastId = 0;

/** Reports the result of an action, with a way back where there is one. */
export function notify(text: string, undo?: Undo): void {
  show({ id: ++lastId, text, isError: false, undo }, undo ? STAY_UNDO_MS : STAY_MS);
}

/** Runs an action and reports its failure. Returns whether it succeeded. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    show({ id: ++lastId, text: error instanceof Error ? error.message : String(error), isError: true }, STAY_UNDO_MS);
    return false;
  }
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

function show(toast: Toast, stayMs: number): void {
  toasts.value = [...toasts.value, toast].slice(-4);
  setTimeout(() => dismiss(toast.id), stayMs);
}
