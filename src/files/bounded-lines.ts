import { CairnError } from "../model/errors.ts";

export interface LineLimits {
  /** Bytes of a line, at most. */
  readonly lineBytes: number;
  /** Bytes without a line break after which the rest of the input is not read. */
  readonly unbrokenBytes: number;
}

/**
 * Yields the lines of a stream, and `undefined` for a line that is too long or not UTF-8. Memory stays bounded. A stream
 * without line breaks, such as /dev/zero or a huge sparse file, is an error: it would never end.
 */
export async function* boundedLines(
  input: AsyncIterable<Buffer | string>,
  signal: AbortSignal,
  { lineBytes, unbrokenBytes }: LineLimits,
): AsyncGenerator<string | undefined> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const keep = (part: Buffer) => {
    bytes += part.length;
    if (bytes <= lineBytes) parts.push(part);
    else parts = [];
    if (bytes > unbrokenBytes)
      throw new CairnError(
        "invalid_input",
        `A line has more than ${unbrokenBytes} bytes, so it is not read. Give a file with shorter lines.`,
      );
  };
  const end = () => {
    const line = bytes > lineBytes ? undefined : decode(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
    parts = [];
    bytes = 0;
    return line;
  };
  for await (const data of input) {
    signal.throwIfAborted();
    const chunk = typeof data === "string" ? Buffer.from(data) : data;
    let start = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, start)) {
      keep(chunk.subarray(start, at));
      yield end();
      start = at + 1;
    }
    keep(chunk.subarray(start));
  }
  if (bytes > 0) yield end();
}

function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined; // a fatal decoder throws only for invalid UTF-8
  }
}
