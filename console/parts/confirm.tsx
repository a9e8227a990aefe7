import { signal } from "@preact/signals";
import { Dialog } from "./dialog.tsx";

interface Question {
  readonly title: string;
  readonly text: string;
  readonly action: string;
  readonly isSafe: boolean;
  readonly answer: (yes: boolean) => void;
}

const question = signal<Question | undefined>(undefined);

/** Asks before an action that has no undo. A safe one destroys nothing. */
export function confirm(title: string, text: string, action: string, { isSafe = false } = {}): Promise<boolean> {
  return new Promise((resolve) => {
    question.value = { title, text, action, isSafe, answer: resolve };
  });
}

/** Shows the question that is open, if any. */
export function ConfirmDialog() {
  const open = question.value;
  if (!open) return null;
  const end = (yes: boolean) => {
    question.value = undefined;
    open.answer(yes);
  };
  return (
    <Dialog title={open.title} onClose={() => end(false)}>
      <p>{open.text}</p>
      <footer>
        <button type="button" onClick={() => end(false)}>
          Cancel
        </button>
        <button type="button" class={open.isSafe ? "primary" : "danger"} onClick={() => end(true)}>
          {open.action}
        </button>
      </footer>
    </Dialog>
  );
}
