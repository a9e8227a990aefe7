/** The lines of a text with what each costs. Only `\n` ends a line, so that the numbers agree with the parser's and git's. */
export interface Lines {
  readonly content: string;
  readonly count: number;
  /** Where line `n` (from 1) starts; `startOf(count + 1)` is the end of the text. */
  startOf(line: number): number;
  /** The line that holds the character at `index`. */
  lineAt(index: number): number;
  /** Estimated tokens of the lines `from` to `to`, inclusive. */
  tokens(from: number, to: number): number;
  isBlank(line: number): boolean;
  slice(from: number, to: number): string;
}

export function linesOf(content: string): Lines {
  const starts: number[] = [0];
  for (let at = content.indexOf("\n"); at >= 0; at = content.indexOf("\n", at + 1)) starts.push(at + 1);
  if (starts[starts.length - 1] !== content.length) starts.push(content.length);
  const count = starts.length - 1;
  const total = new Uint32Array(count + 1);
  for (let line = 0; line < count; line++) total[line + 1] = total[line]! + estimateTokens(content, starts[line]!, starts[line + 1]!);

  return {
    content,
    count,
    startOf: (line) => starts[line - 1]!,
    lineAt(index) {
      let low = 0;
      let high = count - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (starts[middle]! <= index) low = middle;
        else high = middle - 1;
      }
      return low + 1;
    },
    tokens: (from, to) => total[to]! - total[from - 1]!,
    // White space costs nothing, so a line without cost is blank.
    isBlank: (line) => total[line] === total[line - 1],
    slice: (from, to) => content.slice(starts[from - 1], starts[to]),
  };
}

/**
 * About how many tokens an embedding model makes of this: five letters of a word to a token, every other sign one, white
 * space none. One pass without allocation, because every line of every file goes through it.
 */
export function estimateTokens(text: string, from = 0, to = text.length): number {
  let tokens = 0;
  let word = 0;
  for (let index = from; index < to; index++) {
    const code = text.charCodeAt(index);
    if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95) {
      if (word % 5 === 0) tokens++;
      word++;
    } else {
      word = 0;
      if (code > 32) tokens++;
    }
  }
  return tokens;
}
