// The inner loop of the static embedder, in AssemblyScript (a TypeScript-like language for WebAssembly).
// Built by scripts/build-kernel.mjs into dist/kernel/sum-rows.wasm; called through static-table.ts, which also lays out the memory.
// Nothing here allocates: every pointer is given by the caller, and every block starts on a 16-byte boundary.

// @ts-ignore: decorator
@inline
function scaled(half: v128, factor: v128): v128 {
  return f32x4.mul(f32x4.convert_i32x4_s(half), factor);
}

/**
 * Writes the sum of `count` rows of int8 values, each times its factor, as float32 values at `out`. `rows` has the numbers of
 * the rows as int32, `factors` their factors as float32. A row has `stride` bytes, a multiple of 32.
 */
export function sumRows(table: usize, stride: usize, rows: usize, factors: usize, count: i32, out: usize): void {
  for (let at: usize = 0; at < stride; at += 32) {
    let a = f32x4.splat(0);
    let b = f32x4.splat(0);
    let c = f32x4.splat(0);
    let d = f32x4.splat(0);
    let e = f32x4.splat(0);
    let f = f32x4.splat(0);
    let g = f32x4.splat(0);
    let h = f32x4.splat(0);
    for (let i: i32 = 0; i < count; i++) {
      const offset = (<usize>i) << 2;
      const row = table + <usize>load<i32>(rows + offset) * stride + at;
      const factor = v128.load32_splat(factors + offset);
      const first = v128.load8x8_s(row);
      const second = v128.load8x8_s(row + 8);
      const third = v128.load8x8_s(row + 16);
      const fourth = v128.load8x8_s(row + 24);
      a = f32x4.add(a, scaled(i32x4.extend_low_i16x8_s(first), factor));
      b = f32x4.add(b, scaled(i32x4.extend_high_i16x8_s(first), factor));
      c = f32x4.add(c, scaled(i32x4.extend_low_i16x8_s(second), factor));
      d = f32x4.add(d, scaled(i32x4.extend_high_i16x8_s(second), factor));
      e = f32x4.add(e, scaled(i32x4.extend_low_i16x8_s(third), factor));
      f = f32x4.add(f, scaled(i32x4.extend_high_i16x8_s(third), factor));
      g = f32x4.add(g, scaled(i32x4.extend_low_i16x8_s(fourth), factor));
      h = f32x4.add(h, scaled(i32x4.extend_high_i16x8_s(fourth), factor));
    }
    const to = out + (at << 2);
    v128.store(to, a);
    v128.store(to, b, 16);
    v128.store(to, c, 32);
    v128.store(to, d, 48);
    v128.store(to, e, 64);
    v128.store(to, f, 80);
    v128.store(to, g, 96);
    v128.store(to, h, 112);
  }
}
