import type { Operation } from "../operations/operation.ts";

/** Returns the noun and the verb of an operation, as words of a command line: the verb with dashes. */
export function commandPath({ name }: Pick<Operation, "name">): string[] {
  const cut = name.indexOf("_");
  return cut === -1 ? [name] : [name.slice(0, cut), name.slice(cut + 1).replaceAll("_", "-")];
}

const OPERATION = /(?<![-\w./])(?:checkpoint|knowledge|review|project)_(?!path\b|id\b)[a-z]+(?:_[a-z]+)*(?![\w/])/g;

/** Replaces the names of operations in a help text by commands. */
export function commandNames(text: string): string {
  return text.replace(OPERATION, (name) => `cairn ${commandPath({ name }).join(" ")}`);
}

/**
 * Replaces the names of operations and of this operation's fields in a message by commands and flags: `checkpoint_list` is
 * `cairn checkpoint list`, `older_than` is `--older-than`; a field of one word only in backquotes. Quoted text is the user's own and stays.
 */
export function commandWords(message: string, operation: Operation, operations: readonly Operation[]): string {
  const known = new Set(operations.map(({ name }) => name));
  const isFlag = (name: string) => name in operation.input.shape && !operation.cli?.positional?.includes(name);
  return message
    .replace(/^[a-z]+(?=: )/, (name) => (isFlag(name) ? `--${name}` : name))
    .split(/("(?:[^"\\]|\\.)*(?:"|\\?$))/s)
    .map((part) =>
      part.startsWith('"')
        ? part
        : part
            .replace(/`([a-z]+)`/g, (quoted, name: string) => (isFlag(name) ? `--${name}` : quoted))
            .replace(/(?<![-\w./])[a-z]+(?:_[a-z]+)+(?![\w/])/g, (name) => {
              if (known.has(name)) return `cairn ${commandPath({ name }).join(" ")}`;
              if (name === "project_path") return "--project";
              return name in operation.input.shape ? `--${name.replaceAll("_", "-")}` : name;
            }),
    )
    .join("");
}
