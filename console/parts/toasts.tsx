import { useShortcuts } from "../state/keyboard.ts";
import { attempt, dismiss, notify, type Toast, toasts } from "../state/toasts.ts";
import { Icon } from "./icon.tsx";

/** Messages about actions, read out by screen readers. */
export function Toasts() {
  const undoLast = async () => {
    const last = toasts.value.findLast(({ undo }) => undo !== undefined);
    if (last) await undoToast(last);
  };
  useShortcuts([{ keys: "u", text: "Undo the last deletion, while its message is shown", run: () => void undoLast() }]);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={toast.isError ? "toast error" : "toast"}>
          <span>{toast.text}</span>
          {toast.undo && (
            <button type="button" class="link" title="Undo (u)" aria-keyshortcuts="u" onClick={() => undoToast(toast)}>
              Undo
            </button>
          )}
          <button type="button" class="quiet icon" aria-label="Dismiss this message" onClick={() => dismiss(toast.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}

async function undoToast({ id, undo }: Toast): Promise<void> {
  dismiss(id);
  if (undo && (await attempt(undo.run))) notify(undo.done);
}
