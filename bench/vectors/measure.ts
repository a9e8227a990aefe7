/** Measures milliseconds of CPU that the work takes in all threads of this process. */
export async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** One way to store and search vectors. Keys are the indexes of the vectors. */
export interface Candidate {
  add(entries: readonly { readonly key: number; readonly vector: Float32Array }[]): unknown;
  remove(keys: readonly number[]): unknown;
  search(vector: Float32Array, limit: number): readonly number[] | Promise<readonly number[]>;
  searchAllowed?(vector: Float32Array, limit: number, keys: Int32Array): readonly number[] | Promise<readonly number[]>;
  close(): void;
}
