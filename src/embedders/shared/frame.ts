import { CairnError } from "../../model/errors.ts";

/** One message on the socket: four bytes with the length of the body, one byte with its type, then the body. */
export interface Frame {
  readonly type: number;
  readonly body: Buffer;
}

const HEADER_BYTES = 5;

export function encodeFrame({ type, body }: Frame): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  frame.writeUInt32LE(body.length, 0);
  frame.writeUInt8(type, 4);
  body.copy(frame, HEADER_BYTES);
  return frame;
}

/** Reads frames from the chunks of a stream. */
export interface FrameReader {
  /** Returns the frames that this chunk completes. Raises `too_large` before it allocates memory for a body above the limit. */
  read(chunk: Uint8Array): Frame[];
}

/** Returns a reader whose limit may change between frames: a peer that is not known yet may send little. */
export function frameReader(limitBytes: () => number): FrameReader {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerBytes = 0;
  let body: Buffer | undefined;
  let bodyBytes = 0;

  /** Starts the body after the last byte of the header. */
  function startBody(): Buffer {
    const length = header.readUInt32LE(0);
    if (length > limitBytes()) throw new CairnError("too_large", `A frame of ${length} bytes is over the limit of ${limitBytes()}.`);
    bodyBytes = 0;
    return Buffer.allocUnsafe(length);
  }

  return {
    read(chunk) {
      const frames: Frame[] = [];
      for (let at = 0; at < chunk.length || body?.length === bodyBytes; ) {
        if (body === undefined) {
          const taken = Math.min(HEADER_BYTES - headerBytes, chunk.length - at);
          header.set(chunk.subarray(at, at + taken), headerBytes);
          headerBytes += taken;
          at += taken;
          if (headerBytes === HEADER_BYTES) body = startBody();
        } else {
          const taken = Math.min(body.length - bodyBytes, chunk.length - at);
          body.set(chunk.subarray(at, at + taken), bodyBytes);
          bodyBytes += taken;
          at += taken;
          if (bodyBytes < body.length) continue;
          frames.push({ type: header.readUInt8(4), body });
          body = undefined;
          headerBytes = 0;
        }
      }
      return frames;
    },
  };
}
