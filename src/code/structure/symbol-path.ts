import { foldName } from "../query.ts";

/** A symbol as a person writes it: `bar`, `Foo.bar`, `Foo::bar`, `Foo#bar`, `foo->bar`, with or without `()`. */
export interface SymbolPath {
  readonly name: string;
  /** The container: a class, module or file. */
  readonly owner?: string | undefined;
}

export function readSymbolPath(symbol: string): SymbolPath {
  const parts = symbol
    .trim()
    .replace(/\(.*$/s, "")
    .split(/::|->|[.#\\]/)
    .filter((part) => part !== "");
  const name = parts.at(-1) ?? symbol;
  return { name, owner: parts.at(-2) };
}

interface Site {
  readonly parents: readonly string[];
  readonly path: string;
}

/** Returns whether a definition is inside of this owner: one of its parents, or the file, has the owner's name. */
export function isOwnedBy(owner: string, site: Site): boolean {
  return isInside(owner, site) || isInFile(owner, site);
}

/** Returns whether one of the parents of a definition has the owner's name. */
export function isInside(owner: string, { parents }: Site): boolean {
  return parents.some((parent) => foldName(readSymbolPath(parent).name) === foldName(owner));
}

function isInFile(owner: string, { path }: Site): boolean {
  return foldName(path.slice(path.lastIndexOf("/") + 1).split(".", 1)[0]!) === foldName(owner);
}

/**
 * Returns the definitions that belong to an owner. A file is often named after one of its classes, so a file of this name owns what other
 * classes in it define only if nothing else has the owner's name.
 */
export function selectOwned<Definition extends Site>(owner: string, definitions: readonly Definition[]): Definition[] {
  const owned = definitions.filter((site) => isInside(owner, site) || (site.parents.length === 0 && isInFile(owner, site)));
  return owned.length > 0 ? owned : definitions.filter((site) => isInFile(owner, site));
}

/** How certain it is, by syntax alone, that a use of `name` means the one of `owner`. */
export type OwnerMatch = "owner" | "other" | "unknown";

/** Names of the current object in the languages that have a grammar. */
const SELF = new Set(["this", "self", "Self", "cls", "super", "static", "$this"]);

/**
 * Compares the receiver of a use with the owner. `Foo.bar`, `foo.bar` and `this.bar` inside of `Foo` mean the owner. A receiver that
 * is another known owner of the same name means that one. All others are unknown: the type of a variable is not in the syntax.
 */
export function matchOwner(
  use: { readonly line: string; readonly column: number; readonly enclosing: readonly string[] },
  owner: string,
  otherOwners: readonly string[],
): OwnerMatch {
  const receiver = receiverOf(use.line, use.column);
  const isInside = (one: string) => use.enclosing.some((name) => foldName(name) === foldName(one));
  if (receiver === undefined || SELF.has(receiver)) {
    if (isInside(owner)) return "owner";
    return otherOwners.some(isInside) ? "other" : "unknown";
  }
  const means = (one: string) => foldName(receiver).endsWith(foldName(one));
  if (means(owner)) return "owner";
  return otherOwners.some(means) ? "other" : "unknown";
}

/** Returns the name before the separator that precedes a column, as `queue` in `this.queue.run`; undefined without a separator. */
export function receiverOf(line: string, column: number): string | undefined {
  // At most a name of 200 characters, for lines of minified code.
  const before = line.slice(Math.max(0, column - 1 - 220), column - 1).trimEnd();
  const separator = /(?:\?\.|!\.|\.|::|->|#|\\)$/.exec(before)?.[0];
  if (separator === undefined) return undefined;
  const rest = before.slice(0, -separator.length).trimEnd();
  return lastName(rest);
}

/** Returns the identifier at the end of a text, before any of `!?)]`; empty if there is none. */
function lastName(text: string): string {
  let end = text.length;
  while (end > 0 && "!?)]".includes(text[end - 1]!)) end--;
  let start = end;
  while (start > 0 && /[\p{L}\p{N}_$]/u.test(text[start - 1]!)) start--;
  const name = text.slice(start, end);
  return name.slice(Math.max(0, name.lastIndexOf("$"))).replace(/^\p{N}+/u, "");
}
