import { ANCHOR_KINDS, type Anchor, type AnchorKind } from "../model/anchor.ts";
import { type AnchorCandidate, recogniseAnchors } from "./recognise.ts";

/**
 * Writes an anchor as one text, such as `file:src/a.ts hash:9f86…`. The client side sends what it has read from the working tree in this
 * form. Spaces in values are escaped.
 */
export function formatAnchor({ kind, value, ...fields }: AnchorCandidate): string {
  const given = Object.entries(fields).filter(([, field]) => field !== undefined && field !== false);
  return [`${kind}:${encodeValue(value)}`, ...given.map(([name, field]) => `${name}:${encodeValue(String(field))}`)].join(" ");
}

/** Reads an anchor that a caller gives: the form above, or `src/a.ts`, `src/a.ts#parse`, `parse`, a commit id, `branch:main`. */
export function readAnchor(text: string): AnchorCandidate {
  const [first = "", ...rest] = text.trim().split(/\s+/);
  const separator = first.indexOf(":");
  const kind = first.slice(0, separator) as AnchorKind;
  if (separator < 1 || !ANCHOR_KINDS.includes(kind)) return readShort(text.trim());
  const fields: Record<string, string | number | boolean> = {};
  for (const field of rest) {
    const at = field.indexOf(":");
    const name = field.slice(0, at);
    const value = decodeValue(field.slice(at + 1));
    if (TEXT_FIELDS.has(name)) fields[name] = value;
    else if (NUMBER_FIELDS.has(name) && /^\d{1,15}$/.test(value)) fields[name] = Number(value);
    else if (name === "optional") fields.optional = value === "true";
  }
  return { kind, value: decodeValue(first.slice(separator + 1)), ...fields };
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(["path", "hash", "content", "branch"]);
const NUMBER_FIELDS: ReadonlySet<string> = new Set(["lines", "generation"]);

function readShort(text: string): AnchorCandidate {
  const hash = text.indexOf("#");
  if (hash > 0 && hash < text.length - 1)
    return { kind: "symbol", value: text.slice(hash + 1).replace(/\(\)$/, ""), path: text.slice(0, hash) };
  const [found] = recogniseAnchors({ texts: [text] });
  if (found && found.kind !== "symbol") return { kind: found.kind, value: found.value };
  return /[/.\s]/.test(text) ? { kind: "file", value: text } : { kind: "symbol", value: text.replace(/\(\)$/, "") };
}

function encodeValue(value: string): string {
  return value.replace(/[%\s]/g, (char) => encodeURIComponent(char));
}

function decodeValue(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** Returns an anchor without the fields that only matter while it is resolved. */
export function storedAnchor({ optional: _, ...anchor }: AnchorCandidate): Anchor {
  return Object.fromEntries(Object.entries(anchor).filter(([, field]) => field !== undefined)) as unknown as Anchor;
}
