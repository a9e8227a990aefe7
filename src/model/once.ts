/** Returns a function that builds a value on its first call. Schemas that few calls need are built so: building them takes most of the start of a command. */
export function once<T>(build: () => T): () => T {
  let built: { readonly value: T } | undefined;
  return () => {
    built ??= { value: build() };
    return built.value;
  };
}
