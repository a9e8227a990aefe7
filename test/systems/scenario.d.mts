import type { Effect, System } from "../../src/systems.ts";

export const effect: Effect<number>;
export function dataOf(offset: number): number;
export const LAST: { readonly till: number; readonly stock: number };
export function scenario(shop: System, say?: (line: object) => void): Promise<void>;
