import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations as served } from "../../src/operations/list.ts";
import { testEmbedder } from "../support/embedders.ts";
import { sampleSource, type TestRepository, testRepository } from "./repository.ts";

const operations = decorateOperations(served, { freshness: { limitMs: 30_000 } });

describe("a review", () => {
  let repository: TestRepository;
  let cairn: Cairn;
  const call = async (name: string, input: Record<string, unknown> = {}) =>
    invoke(cairn, operations.find((one) => one.name === name)!, { project_path: repository.root, ...input }, { caller: LOCAL_CALLER });
  const listed = async () => ((await call("review_list")).records as { id: string }[]).map(({ id }) => id);
  const knowledge = (id: string, answer: string) => call("knowledge_save", { id, question: `What is ${id}?`, answer });

  beforeAll(async () => {
    repository = testRepository();
    for (const name of ["a", "b", "c", "d"]) repository.write(`src/${name}.js`, sampleSource(name));
    repository.commit();
    cairn = await open({ storage: "memory", embedder: [testEmbedder()], freshness: { limitMs: 60_000 } });
    await knowledge("used", "In src/a.js.");
    await knowledge("unused", "In src/b.js.");
    await knowledge("right", "In src/c.js.");
    await knowledge("reported", "Nowhere in particular.");
    for (let use = 0; use < 3; use++) await call("knowledge_feedback", { id: "used", success: true });
    repository.write("src/a.js", "// new\n");
    repository.remove("src/b.js");
    repository.commit();
  });
  afterAll(async () => {
    await cairn.close();
    repository.dispose();
  });

  it("lists stale records of the working tree, the most used first", async () => {
    expect(await listed()).toEqual(["used", "unused"]);
  });

  it("lists a record that was reported as outdated, which ranks below and carries the count", async () => {
    const feedback = await call("knowledge_feedback", { id: "reported", outdated: true });
    expect(feedback).toMatchObject({ outdated: 1, usage_count: 1, successes: 0 });
    expect(await listed()).toEqual(["used", "reported", "unused"]);
    const { results } = await call("knowledge_search", { query: "What is reported? What is right?" });
    expect((results as { knowledge: { id: string } }[]).at(-1)!.knowledge).toMatchObject({ id: "reported", outdated: 1 });
    await expect(call("knowledge_feedback", { id: "reported" })).rejects.toThrow("success: is required");
  });

  it("lists a replaced record, which ranks below its replacement", async () => {
    await call("knowledge_save", { id: "newer", question: "What is right?", answer: "In src/c.js, really.", supersedes: ["right"] });
    expect(await listed()).toContain("right");
    const { results } = await call("knowledge_search", { query: "What is right?" });
    const order = (results as { knowledge: { id: string; superseded_by?: string } }[]).map((one) => one.knowledge);
    expect(order.findIndex(({ id }) => id === "newer")).toBeLessThan(order.findIndex(({ id }) => id === "right"));
    expect(order.find(({ id }) => id === "right")).toMatchObject({ superseded_by: "newer" });
  });

  it("says why each record is listed", async () => {
    const { records } = await call("review_list");
    const reasons = new Map((records as { id: string; reason: string }[]).map(({ id, reason }) => [id, reason]));
    expect(reasons.get("reported")).toMatch(/^reported as outdated/);
    expect(reasons.get("right")).toMatch(/^superseded by newer/);
    const others = [...reasons].filter(([id]) => id !== "reported" && id !== "right").map(([, reason]) => reason);
    expect(others.length).toBeGreaterThan(0);
    for (const reason of others) expect(reason).toMatch(/^(changed|gone|renamed): /);
  });

  it("keeps a record, which is anchored to the code as it is now", async () => {
    await call("review_resolve", { action: "keep", collection: "knowledge", id: "used" });
    await call("review_resolve", { action: "keep", collection: "knowledge", id: "right" });
    expect(await listed()).toEqual(["reported", "unused"]);
    expect(await call("knowledge_get", { id: "used" })).toMatchObject({ freshness: { state: "fresh" }, usage_count: 3 });
  });

  it("updates a record, and refuses an update without a text", async () => {
    const record = { collection: "knowledge", id: "reported" };
    await expect(call("review_resolve", { action: "update", ...record })).rejects.toThrow("question or answer");
    await call("review_resolve", { action: "update", ...record, answer: "In src/d.js." });
    expect(await listed()).toEqual(["unused"]);
    expect(await call("knowledge_get", { id: "reported" })).toMatchObject({
      answer: "In src/d.js.",
      outdated: 0,
      freshness: { state: "fresh" },
    });
  });

  it("retires a record", async () => {
    await call("review_resolve", { action: "retire", collection: "knowledge", id: "unused" });
    expect(await listed()).toEqual([]);
    await expect(call("review_resolve", { action: "retire", collection: "checkpoint", id: "never" })).rejects.toThrow("No checkpoint");
  });
});
