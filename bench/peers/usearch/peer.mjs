// usearch: an HNSW graph over int8 vectors in memory. It has no filter in JavaScript and is no store.
import { Index, MetricKind, ScalarKind } from "usearch";

export function open({ dimension }) {
  const index = new Index({
    dimensions: dimension,
    metric: MetricKind.Cos,
    quantization: ScalarKind.I8,
    connectivity: 16,
    expansion_add: 128,
    expansion_search: 64,
    multi: false,
  });
  return {
    add(entries) {
      for (const { key, vector } of entries) index.add(BigInt(key), vector, 1);
    },
    remove(keys) {
      for (const key of keys) index.remove(BigInt(key));
    },
    search: (vector, limit) => [...index.search(vector, limit, 1).keys].map(Number),
    close() {},
  };
}
