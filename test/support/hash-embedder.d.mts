import type { Embedder } from "../../src/ports/embedder.ts";

export function hashEmbedder(options: { readonly model: string; readonly dimension: number; readonly paceMs?: number }): Embedder;
