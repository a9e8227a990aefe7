import type { ComponentChildren } from "preact";
import { CopyButton } from "./copy-button.tsx";

interface EmptyProps {
  /** What would appear here. */
  readonly text: string;
  /** The command that makes it appear. */
  readonly command?: string;
  /** An action that makes it appear as well. */
  readonly children?: ComponentChildren;
}

/** Says in one line what would appear here, and shows the command that makes it appear. */
export function Empty({ text, command, children }: EmptyProps) {
  return (
    <div class="empty">
      <p>{text}</p>
      {command !== undefined && <Command text={command} />}
      {children}
    </div>
  );
}

/** Shows a command line with a button that copies it. */
export function Command({ text }: { readonly text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={() => text} label="Copy command" />
    </div>
  );
}
