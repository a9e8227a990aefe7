import { readFileSync } from "node:fs";
import { builtFile } from "../../../files/built-file.ts";

/** The functions of kernel.as over one memory. Numbers are addresses or counts; see there for their meaning. */
export interface Kernel {
  readonly memory: WasmMemory;
  begin(heap: number, limit: number): void;
  size(): number;
  fillSet(set: number, mask: number, keys: number, count: number): void;
  // biome-ignore format: grouped as in kernel.as
  scan(keys: number, scales: number, codes: number, count: number, stride: number,
    query: number, queryScale: number, gone: number, goneMask: number): void;
  // biome-ignore format: grouped as in kernel.as
  scanAllowed(keys: number, scales: number, codes: number, count: number, stride: number,
    query: number, queryScale: number, gone: number, goneMask: number, allowed: number, allowedMask: number): void;
  // biome-ignore format: grouped as in kernel.as
  assign(codes: number, count: number, stride: number,
    keys: number, scales: number, centroids: number, centroidCount: number, nearest: number, scratch: number): void;
  checksum(at: number, length: number, seed: number): number;
}

/** The part of the WebAssembly interface used here; TypeScript has it only in the browser's library. */
interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}
interface Wasm {
  Module: new (bytes: Uint8Array) => object;
  Memory: new (size: { initial: number; maximum: number }) => WasmMemory;
  Instance: new (module: object, imports: object) => { readonly exports: unknown };
}
const { Module, Memory, Instance } = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly;

const WASM_PAGE_BYTES = 65_536;
let compiled: object | undefined;

/** A kernel with a memory of its own that can grow up to `limitBytes`. */
export function startKernel(limitBytes: number): Kernel {
  compiled ??= new Module(readFileSync(builtFile("kernel/scan.wasm")));
  const memory = new Memory({ initial: 1, maximum: Math.ceil(limitBytes / WASM_PAGE_BYTES) });
  const { exports } = new Instance(compiled, { env: { memory } });
  return { ...(exports as Omit<Kernel, "memory">), memory };
}

/** Grows the memory to at least this size. Existing views of it become invalid. */
export function growTo({ memory }: Kernel, bytes: number): void {
  const missing = bytes - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / WASM_PAGE_BYTES));
}
