import { cutToWidth, textWidth, wrapText } from "./width.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these start and end a style.
const STYLE = /(\u001B\[\d+m)/;
/** A line of code: numbered, or after the place of a match. */
const CODE = /^ *(?:\d+ {2}|\S+:\d+:\d+ )/;
const INDENT = "    ";

/** Fits a text to the terminal: cuts lines of code, which a reader skims, and wraps other lines at words. */
export function fitLines(text: string, width: number): string {
  return text
    .split("\n")
    .flatMap((line) => {
      const plain = parts(line)
        .filter((part) => !STYLE.test(part))
        .join("");
      if (textWidth(plain) <= width) return [line];
      return CODE.test(plain) ? [cutLine(line, width)] : wrapLine(plain, width);
    })
    .join("\n");
}

const parts = (line: string) => line.split(STYLE);

/** Cuts a line and keeps its styles, which take no cells. */
function cutLine(line: string, width: number): string {
  let left = width;
  return parts(line)
    .map((part) => {
      if (STYLE.test(part)) return part;
      const cut = left > 0 ? cutToWidth(part, left) : "";
      left = cut === part ? left - textWidth(part) : 0;
      return cut;
    })
    .join("");
}

/** Wraps a line with an indent, without its styles. */
function wrapLine(plain: string, width: number): string[] {
  const [first = "", ...rest] = wrapText(plain, width);
  return rest.length === 0 ? [first] : [first, ...wrapText(rest.join(" "), width - INDENT.length).map((line) => `${INDENT}${line}`)];
}
