import { CairnError } from "../model/errors.ts";

/** Bytes of a line, at most. A record has at most about 40,000 characters. */
const LINE_BYTES = 1_000_000;
/** Bytes without a line break after which the rest of the input is not read. */
const UNBROKEN_BYTES = 64 * LINE_BYTES;

/**
 * Yields the lines of a stream, and `undefined` for a line that is too long or not UTF-8. Memory stays bounded. A stream
 * without line breaks, such as /dev/zero or a huge sparse file, is an error: it would never end.
 */
export async function* boundedLines(input: NodeJS.ReadableStream, signal: AbortSignal): AsyncGenerator<string | undefined> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const keep = (part: Buffer) => {
    bytes += part.length;
    if (bytes <= LINE_BYTES) parts.push(part);
    else parts = [];
    if (bytes > UNBROKEN_BYTES)
      throw new CairnError(
        "invalid_input",
        `A line has more than ${UNBROKEN_BYTES} bytes, so this is not an export of Cairn. Give another file.`,
      );
  };
  const end = () => {
    const line = bytes > LINE_BYTES ? undefined : decode(Buffer.concat(parts));
    parts = [];
    bytes = 0;
    return line;
  };
  for await (const data of input) {
    signal.throwIfAborted();
    const chunk = Buffer.from(data);
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
