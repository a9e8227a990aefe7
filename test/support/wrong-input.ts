/** Passes off a value as a type that forbids it. Only for tests of validation: callers in JavaScript can send anything. */
export function wrongInput<T>(value: unknown): T {
  return value as T;
}
