import { expect, it, vi } from "vitest";
import { withoutSqliteWarning } from "../../src/stores/sqlite/driver/engine.ts";

it("hides Node's warning that SQLite is experimental, and no other", () => {
  const original = process.emitWarning;
  const emitted = vi.fn();
  process.emitWarning = emitted as typeof process.emitWarning;
  try {
    const loaded = withoutSqliteWarning(() => {
      process.emitWarning("SQLite is an experimental feature and might change at any time", "ExperimentalWarning");
      process.emitWarning("Another feature is experimental", "ExperimentalWarning");
      return "module";
    });
    expect(loaded).toBe("module");
    expect(emitted.mock.calls).toEqual([["Another feature is experimental", "ExperimentalWarning"]]);
    expect(process.emitWarning).toBe(emitted);
  } finally {
    process.emitWarning = original;
  }
});
