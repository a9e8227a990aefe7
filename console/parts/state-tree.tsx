import { useState } from "preact/hooks";
import { changeOf, childrenOf } from "./compare-values.ts";

interface StateTreeProps {
  readonly value: unknown;
  readonly before?: unknown;
  readonly hasBefore?: boolean;
}

/** A value as a tree that folds. What changed since the value before is marked. */
export function StateTree({ value, before, hasBefore = false }: StateTreeProps) {
  return (
    <div class="tree" role="group" aria-label="State">
      {childrenOf(value, hasBefore ? before : value) === undefined ? (
        <code>{leafText(value)}</code>
      ) : (
        <Branch value={value} before={hasBefore ? before : value} depth={0} />
      )}
    </div>
  );
}

const OPEN_DEPTH = 2;
const MAX_CHILDREN = 200;

function Branch({ value, before, depth }: { readonly value: unknown; readonly before: unknown; readonly depth: number }) {
  const children = childrenOf(value, before)!;
  return (
    <ul>
      {children.slice(0, MAX_CHILDREN).map(({ name, value: now, before: then }) => (
        <Entry key={name} name={name} value={now} before={then} depth={depth} />
      ))}
      {children.length > MAX_CHILDREN && <li class="soft">{children.length - MAX_CHILDREN} more</li>}
    </ul>
  );
}

interface EntryProps {
  readonly name: string;
  readonly value: unknown;
  readonly before: unknown;
  readonly depth: number;
}

function Entry({ name, value, before, depth }: EntryProps) {
  const change = changeOf(value, before);
  const children = childrenOf(value, before);
  const [open, setOpen] = useState(depth < OPEN_DEPTH || change !== "same");
  return (
    <li class={change}>
      {children === undefined ? (
        <>
          <span class="key">{name}</span> {change === "changed" && <del>{leafText(before)}</del>}{" "}
          <code>{leafText(change === "removed" ? before : value)}</code>
        </>
      ) : (
        <>
          <button type="button" class="quiet fold" aria-expanded={open} onClick={() => setOpen(!open)}>
            <span class="key">{name}</span>{" "}
            <span class="soft">{Array.isArray(value ?? before) ? `[${children.length}]` : `{${children.length}}`}</span>
          </button>
          {open && <Branch value={value} before={before} depth={depth + 1} />}
        </>
      )}
      {change !== "same" && <span class="badge">{change}</span>}
    </li>
  );
}

function leafText(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value);
}
