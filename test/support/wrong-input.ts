/** Casts a value to a type that forbids it, for tests of validation: JavaScript callers can pass anything. */
export function wrongInput<T>(value: unknown): T {
  return value as T;
}
