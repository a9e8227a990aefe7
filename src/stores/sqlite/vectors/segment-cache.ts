import { MAX_DIMENSION, PACK_BYTES } from "./codes.ts";
import { growTo, type Kernel, startKernel } from "./kernel.ts";

/** Packs in the kernel's memory, each in a frame of PACK_BYTES; when the limit is reached the one used longest ago goes. */
export interface PackCache {
  readonly kernel: Kernel;
  /**
   * Where the pack of this name lies. If it is not there, or is there under another stamp, `fill` brings it.
   * The answer is good until the next call.
   */
  frame(name: FrameName, stamp: number, fill: (at: number) => void): number;
  /** A run of memory for sets of keys, apart from the frames. Good until the next call. */
  room(bytes: number): number;
  /** Forgets the packs that are named. */
  drop(names: Iterable<FrameName>): void;
  /** Forgets all packs of a file. */
  dropFile(file: number): void;
  /** Bytes of memory in use, or kept for use. */
  readonly bytes: number;
}

/** Whose pack it is and which; packs of recent rows are told apart by text. */
export type FrameName = `${number}/${string}`;

/** Addresses in the kernel's memory, below the frames. */
export const QUERY_AT = 0;
export const HEAP_AT = 2 * MAX_DIMENSION;
export const HEAP_MAX = 16_384;
const FRAMES_AT = Math.ceil((HEAP_AT + 8 * HEAP_MAX) / PACK_BYTES) * PACK_BYTES;
/** Sets of keys are not counted in the limit. The largest filter allowed takes 48 MB, the recent rows at most a few. */
const ROOM_MAX_BYTES = 64 * 1024 * 1024;

export function packCache(limitBytes: number): PackCache {
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
    if (frameBytes + PACK_BYTES > limitBytes)
      for (const [name, { at }] of frames) {
        frames.delete(name);
        return at;
      }
    return takeEnd(PACK_BYTES);
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
    room(bytes) {
      if (bytes > roomBytes) {
        // The old run is cut into frames, so nothing is lost; doubling keeps this rare.
        for (let at = roomAt; at < roomAt + roomBytes; at += PACK_BYTES) free.push(at);
        frameBytes += roomBytes;
        roomBytes = Math.min(ROOM_MAX_BYTES, Math.ceil(Math.max(bytes, 2 * roomBytes) / PACK_BYTES) * PACK_BYTES);
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
