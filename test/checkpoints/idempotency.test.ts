import { afterEach, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";

const PROJECT = "/idempotent";
let cairn: Cairn;
afterEach(() => cairn.close());

const call = (name: string, input: Record<string, unknown>) =>
  invoke(cairn, operations.find((one) => one.name === name)!, input, { caller: LOCAL_CALLER });

it("returns the first checkpoint when a save is repeated with its key", async () => {
  cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  const input = { project_path: PROJECT, summary: "Parser done", idempotency_key: "call-1" };
  const first = await call("checkpoint_save", input);
  const second = await call("checkpoint_save", { ...input, summary: "Sent again by the balancer" });
  expect(second).toEqual(first);
  const other = await call("checkpoint_save", { ...input, idempotency_key: "call-2" });
  expect(other.id).not.toBe(first.id);
  expect((await cairn.checkpoints.list({ projectPath: PROJECT })).total).toBe(2);
});

it("does not save again under the key of a deleted checkpoint", async () => {
  cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  const save = () => cairn.checkpoints.save({ projectPath: PROJECT, summary: "Parser done", idempotencyKey: "call-1" });
  const { id } = await save();
  await cairn.checkpoints.delete({ projectPath: PROJECT, id });
  await expect(save()).rejects.toMatchObject({ code: "conflict" });
});

it("returns the first knowledge record and counts feedback once for concurrent calls with one key", async () => {
  cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  const input = { scope: "shared", question: "How?", answer: "Thus.", idempotency_key: "k" };
  const saved = await Promise.all(Array.from({ length: 5 }, () => call("knowledge_save", input)));
  expect(new Set(saved.map(({ id }) => id)).size).toBe(1);
  const report = { scope: "shared", id: saved[0]!.id, success: true, idempotency_key: "k" };
  const reports = await Promise.all(Array.from({ length: 5 }, () => call("knowledge_feedback", report)));
  expect(reports.map(({ usage_count }) => usage_count)).toEqual([1, 1, 1, 1, 1]);
});
