import { MAX_DIMENSION, SEGMENT_BYTES } from "./codes.ts";
import { growTo, type Kernel, startKernel } from "./kernel.ts";

/** An LRU cache of segments in the memory of the kernel, each in a frame of SEGMENT_BYTES. */
export interface SegmentCache {
  readonly kernel: Kernel;
  /**
   * Returns the address of the segment with this name, valid until the next call. `fill` loads a segment that is missing or has
   * another stamp.
   */
  frame(name: FrameName, stamp: number, fill: (at: number) => void): number;
  /** Reserves memory for sets of keys outside the frames and returns its address, valid until the next call. */
  reserve(bytes: number): number;
  /** Drops the named segments. */
  drop(names: Iterable<FrameName>): void;
  /** Drops all segments of a file. */
  dropFile(file: number): void;
  /** Bytes of allocated memory. */
  readonly bytes: number;
}

/** File number and segment id; the names of delta segments start with a word instead. */
export type FrameName = `${number}/${string}`;

/** Addresses in the kernel's memory, below the frames. */
export const QUERY_AT = 0;
export const HEAP_AT = 2 * MAX_DIMENSION;
export const HEAP_MAX = 16_384;
const FRAMES_AT = Math.ceil((HEAP_AT + 8 * HEAP_MAX) / SEGMENT_BYTES) * SEGMENT_BYTES;
/** The limit does not count sets of keys. The largest filter takes 48 MB, the delta rows a few MB. */
const ROOM_MAX_BYTES = 64 * 1024 * 1024;

export function segmentCache(limitBytes: number): SegmentCache {
  const kernel = startKernel(FRAMES_AT + limitBytes + 2 * ROOM_MAX_BYTES);
  growTo(kernel, FRAMES_AT);
  const frames = new Map<FrameName, { readonly at: number; readonly stamp: number }>(); // in order of last use
  const free: number[] = [];
  let end = FRAMES_AT;
  let frameBytes = 0;
  let roomAt = 0;
  let roomBytes = 0;

  function takeFrame(): number {
    const spare = free.pop();
    if (spare !== undefined) return spare;
    if (frameBytes + SEGMENT_BYTES > limitBytes)
      for (const [name, { at }] of frames) {
        frames.delete(name);
        return at;
      }
    return takeEnd(SEGMENT_BYTES);
  }

  function takeEnd(bytes: number): number {
    growTo(kernel, end + bytes);
    const at = end;
    end += bytes;
    frameBytes += bytes;
    return at;
  }

  function drop(names: Iterable<FrameName>): void {
    for (const name of names) {
      const held = frames.get(name);
      if (held) free.push(held.at);
      frames.delete(name);
    }
  }

  return {
    kernel,
    frame(name, stamp, fill) {
      const held = frames.get(name);
      frames.delete(name);
      const at = held?.at ?? takeFrame();
      if (held?.stamp !== stamp) {
        try {
          fill(at);
        } catch (error) {
          free.push(at);
          throw error;
        }
      }
      frames.set(name, { at, stamp });
      return at;
    },
    reserve(bytes) {
      if (bytes > roomBytes) {
        // The old memory becomes frames, so nothing is lost; doubling keeps this rare.
        for (let at = roomAt; at < roomAt + roomBytes; at += SEGMENT_BYTES) free.push(at);
        frameBytes += roomBytes;
        roomBytes = Math.min(ROOM_MAX_BYTES, Math.ceil(Math.max(bytes, 2 * roomBytes) / SEGMENT_BYTES) * SEGMENT_BYTES);
        roomAt = takeEnd(roomBytes);
        frameBytes -= roomBytes;
      }
      return roomAt;
    },
    drop,
    dropFile(file) {
      drop([...frames.keys()].filter((name) => name.startsWith(`${file}/`)));
    },
    get bytes() {
      return kernel.memory.buffer.byteLength;
    },
  };
}
