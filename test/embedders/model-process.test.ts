import { EventEmitter } from "node:events";
import { expect, it, vi } from "vitest";
import { modelProcess } from "../../src/embedders/local/model-process.ts";

/** A child as Bun starts it: its channel has neither ref nor unref. */
class BunChild extends EventEmitter {
  readonly channel = {};
  readonly pid = 1;
  exitCode: number | null = null;
  readonly signalCode = null;
  ref(): void {}
  unref(): void {}
  send(request: { readonly text: string }): void {
    setImmediate(() => this.emit("message", { length: request.text.length }));
  }
  kill(): void {
    this.exitCode = 0;
    setImmediate(() => this.emit("exit", 0, null));
  }
}

vi.mock("node:child_process", () => ({ fork: () => new BunChild() }));

it("asks a process whose channel has no reference, as under Bun", async () => {
  const model = modelProcess<{ text: string }, { length: number }>({ entry: "model.js" });
  expect(await model.ask({ text: "four" })).toEqual({ length: 4 });
  await model.stop();
});
