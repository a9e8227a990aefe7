/** One line of input, or the fact that there was one too long to keep. */
export type Line =
  | { readonly text: string }
  | { readonly tooLong: true; readonly head: string; readonly tail: string }
  | { readonly notUtf8: true };

/** How much of each end of a line that is too long is kept, to find the id of the request in it. */
export const KEPT_BYTES = 1024;

/** Cuts a byte stream into lines of bounded length. A longer line is dropped as it arrives, never held in memory, and the next line is read as usual. */
export function lineReader(maxBytes: number, onLine: (line: Line) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let bytes = 0;
  let tooLong: { head: string; tail: Buffer } | undefined;

  function keep(part: Buffer): void {
    bytes += part.length;
    if (tooLong) tooLong.tail = Buffer.concat([tooLong.tail, part]).subarray(-KEPT_BYTES);
    else {
      parts.push(part);
      if (bytes <= maxBytes) return;
      const all = Buffer.concat(parts);
      tooLong = { head: all.toString("utf8", 0, KEPT_BYTES), tail: Buffer.from(all.subarray(-KEPT_BYTES)) };
      parts = [];
    }
  }

  function end(): void {
    const long = tooLong;
    const line = Buffer.concat(parts);
    parts = [];
    bytes = 0;
    tooLong = undefined;
    if (line.length === 0 && !long) return; // an empty line says nothing
    if (long) onLine({ tooLong: true, head: long.head, tail: long.tail.toString("utf8") });
    else onLine(decodeLine(line));
  }

  return (chunk) => {
    let start = 0;
    for (let newline = chunk.indexOf(10); newline !== -1; newline = chunk.indexOf(10, start)) {
      keep(chunk.subarray(start, newline));
      end();
      start = newline + 1;
    }
    if (start < chunk.length) keep(chunk.subarray(start));
  };
}

function decodeLine(line: Buffer): Line {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(line) };
  } catch {
    return { notUtf8: true };
  }
}
