let segmenter: Intl.Segmenter | undefined;

/** Splits a text into the characters that a reader sees. The segmenter loads tables, so plain ASCII never creates it. */
function graphemes(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** East Asian wide characters and emoji take two cells. */
const WIDE =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\u33FF\u3400-\u4DBF\u4E00-\u9FFF\uA000-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|^\p{Emoji_Presentation}|\uFE0F/u;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

/** Returns the number of terminal cells of a text. */
export function textWidth(text: string): number {
  if (/^[\x20-\x7E]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes(text)) width += segmentWidth(segment);
  return width;
}

/** Shortens a text to a width, with an ellipsis. */
export function cutToWidth(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let taken = "";
  let used = 0;
  for (const { segment } of graphemes(text)) {
    used += segmentWidth(segment);
    if (used > width - 1) break;
    taken += segment;
  }
  return `${taken.trimEnd()}…`;
}

export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

/** Wraps a text at spaces into lines of at most this width. */
export function wrapText(text: string, width: number): string[] {
  return text.split("\n").flatMap((line) => {
    const lines: string[] = [];
    let current = "";
    for (const word of line.split(" ")) {
      const longer = current === "" ? word : `${current} ${word}`;
      if (current !== "" && textWidth(longer) > width) {
        lines.push(current);
        current = word;
      } else current = longer;
    }
    return [...lines, current];
  });
}

function segmentWidth(segment: string): number {
  if (INVISIBLE.test(segment)) return 0;
  return WIDE.test(segment) ? 2 : 1;
}
