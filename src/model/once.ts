/** Returns a function that builds a value on its first call. Schemas that few calls need are built so: building them takes most of the start of a command. */
export function once<T>(build: () => T): () => T {
  let built: { readonly value: T } | undefined;
  return () => {
    built ??= { value: build() };
    return built.value;
  };
}

/** Returns an object whose properties are built when they are read first. */
export function onFirstUse<T extends object>(builders: { readonly [Name in keyof T]: () => T[Name] }): T {
  const properties = Object.entries(builders).map(([name, build]) => {
    const builtOnce = once(build as () => unknown);
    // The value replaces the getter, so that later reads cost nothing. Copies of the object build nothing twice.
    const get = function (this: object) {
      const value = builtOnce();
      Object.defineProperty(this, name, { value, enumerable: true });
      return value;
    };
    return [name, { get, enumerable: true, configurable: true }];
  });
  return Object.defineProperties({}, Object.fromEntries(properties)) as T;
}

/** Returns a copy of an object with other properties. Unlike a spread it does not read those of the object, which may be built on first use. */
export function withProperties<Base extends object, Own extends object>(base: Base, own: Own): Base & Own {
  const described = { ...Object.getOwnPropertyDescriptors(base), ...Object.getOwnPropertyDescriptors(own) };
  return Object.defineProperties({}, described as PropertyDescriptorMap) as Base & Own;
}
