import { useState } from "preact/hooks";
import { attempt } from "../state/toasts.ts";
import { Icon, type IconName } from "./icon.tsx";

interface CopyButtonProps {
  readonly text: () => string | Promise<string>;
  readonly label: string;
  /** Shows the label as text instead of an icon. */
  readonly isText?: boolean;
  readonly icon?: IconName;
}

const SHOW_MS = 1_500;

/** Copies a text to the clipboard and confirms it in place. */
export function CopyButton({ text, label, isText = false, icon = "copy" }: CopyButtonProps) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    if (!(await attempt(async () => navigator.clipboard.writeText(await text())))) return;
    setDone(true);
    setTimeout(() => setDone(false), SHOW_MS);
  };
  return (
    <button
      type="button"
      class={isText ? "quiet" : "quiet icon"}
      title={isText ? undefined : label}
      aria-label={isText ? undefined : label}
      onClick={copy}
    >
      {isText ? isDone ? "Copied" : label : <Icon name={isDone ? "check" : icon} />}
    </button>
  );
}
