import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, Command, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { DeltaSnapshot, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, describe, expect, it } from "vitest";
import { CairnSaver } from "../../src/adapters/langgraph/index.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-saver-"));
const databases: TestDatabase[] = [];
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  for (const database of databases) await database.drop();
});
let files = 0;
const backends: Record<string, () => Promise<() => CairnSaver>> = {
  SQLite: async () => {
    const path = join(folder, `${files++}.db`);
    return () => new CairnSaver({ storage: "sqlite", path });
  },
};
if (postgresWanted)
  backends.PostgreSQL = async () => {
    const database = await testDatabase();
    databases.push(database);
    return () => new CairnSaver({ storage: "postgres", url: database.url, poolMax: 4 });
  };

const meta = { source: "loop", step: 1, parents: {} } as const;

for (const [name, prepare] of Object.entries(backends))
  describe(`CairnSaver on ${name}`, () => {
    it("carries a conversation with an interrupt over a restart", async () => {
      const open = await prepare();
      const build = (saver: CairnSaver) =>
        new StateGraph(MessagesAnnotation)
          .addNode("ask", () => ({ messages: [new AIMessage(`approved: ${interrupt({ question: "may I?" })}`)] }))
          .addNode("say", ({ messages }: { messages: BaseMessage[] }) => ({ messages: [new AIMessage(`heard ${messages.length}`)] }))
          .addEdge(START, "say")
          .addEdge("say", "ask")
          .addEdge("ask", END)
          .compile({ checkpointer: saver });
      const config = { configurable: { thread_id: "t" } };
      const first = open();
      const paused = await build(first).invoke({ messages: [new HumanMessage("hello")] }, config);
      expect(paused).toMatchObject({ __interrupt__: [{}] });
      await first.close();

      const second = open();
      const done = await build(second).invoke(new Command({ resume: "yes" }), config);
      expect(done.messages.map(({ content }) => content)).toEqual(["hello", "heard 1", "approved: yes"]);
      expect(done.messages[1]).toBeInstanceOf(AIMessage);
      const history = [];
      for await (const state of build(second).getStateHistory(config)) history.push(state);
      expect(history.length).toBe(4);
      await second.close();
    });

    it("stores a channel that did not change once, and finds it through forks", async () => {
      const open = await prepare();
      const saver = open();
      const State = Annotation.Root({ big: Annotation<string>(), n: Annotation<number>() });
      const app = new StateGraph(State)
        .addNode("count", ({ n }) => ({ n: n + 1 }))
        .addEdge(START, "count")
        .addConditionalEdges("count", ({ n }) => (n % 5 === 0 ? END : "count"))
        .compile({ checkpointer: saver });
      const config = { configurable: { thread_id: "t" } };
      const big = "x".repeat(100_000);
      await app.invoke({ big, n: 0 }, config);
      const states = [];
      for await (const state of app.getStateHistory(config)) states.push(state);
      expect(states[0]?.values).toEqual({ big, n: 5 });
      const fork = await app.updateState(states[3]!.config, { n: 2 });
      expect((await app.invoke(null, fork)).n).toBe(5);
      expect((await app.getState(fork)).values).toEqual({ big, n: 2 });
      const { bytes } = await saver.prune({ olderThan: new Date(Date.now() + 60_000) });
      // Once as the input, once as the write of the first task, once as the channel; eleven checkpoints share that.
      expect(bytes).toBeLessThan(4 * big.length);
      await saver.close();
    });

    it("keeps to a retention, with all that the kept ones need", async () => {
      const open = await prepare();
      const saver = open();
      const config = { configurable: { thread_id: "t" } };
      const State = Annotation.Root({ still: Annotation<string>(), n: Annotation<number>() });
      const app = new StateGraph(State)
        .addNode("count", ({ n }) => ({ n: n + 1 }))
        .addEdge(START, "count")
        .addConditionalEdges("count", ({ n }) => (n < 50 ? "count" : END))
        .compile({ checkpointer: saver });
      await app.invoke({ still: "here since the start", n: 0 }, { ...config, recursionLimit: 100 });
      const report = await saver.prune({ keepLast: 5 });
      expect(report.checkpoints).toBeGreaterThan(40);
      const left = [];
      for await (const tuple of saver.list(config)) left.push(tuple);
      expect(left.length).toBe(5);
      expect(left.map(({ checkpoint }) => checkpoint.channel_values.still)).toEqual(Array(5).fill("here since the start"));
      expect((await app.getState(config)).values).toEqual({ still: "here since the start", n: 50 });
      // What is only kept for others cannot be got any more.
      const oldest = left.at(-1)!;
      expect(await saver.getTuple(oldest.parentConfig!)).toBeUndefined();
      expect((await saver.prune({ keepLast: 5 })).checkpoints).toBe(0);
      expect(await saver.prune({ olderThan: new Date(Date.now() + 60_000) })).toMatchObject({ threads: 1 });
      expect(await saver.getTuple(config)).toBeUndefined();
      await saver.close();
    });

    it("keeps the ancestors from which a delta channel is put together", async () => {
      const open = await prepare();
      const saver = open();
      let config: RunnableConfig = { configurable: { thread_id: "t", checkpoint_ns: "" } };
      for (let i = 0; i < 12; i++) {
        const snapshot = i % 5 === 0;
        const channel_values = snapshot ? { log: new DeltaSnapshot([`snapshot ${i}`]) } : {};
        const checkpoint = { ...emptyCheckpoint(), id: uuid6(i), channel_values, channel_versions: { log: i + 1 } };
        const counters = { counters_since_delta_snapshot: { log: [i % 5, i % 5] as [number, number] } };
        config = await saver.put(config, checkpoint, { ...meta, ...counters }, { log: i + 1 });
        await saver.putWrites(config, [["log", `entry ${i}`]], `task ${i}`);
      }
      const before = await saver.getDeltaChannelHistory({ config, channels: ["log"] });
      expect(before.log?.writes.map(([, , value]) => value)).toEqual(["entry 10"]);
      expect((await saver.prune({ keepLast: 3 })).checkpoints).toBeGreaterThan(3);
      expect(await saver.getDeltaChannelHistory({ config, channels: ["log"] })).toEqual(before);
      const parents = [];
      for await (const tuple of saver.list({ configurable: { thread_id: "t" } })) parents.push(tuple);
      const third = await saver.getDeltaChannelHistory({ config: parents[2]!.config, channels: ["log"] });
      expect(third.log?.writes.map(([, , value]) => value)).toEqual(["entry 5", "entry 6", "entry 7", "entry 8"]);
      expect(third.log?.seed).toEqual(new DeltaSnapshot(["snapshot 5"]));
      await saver.close();
    });

    it("refuses what cannot be stored, and brings back nothing but data", async () => {
      const open = await prepare();
      const saver = open();
      const put = (thread: unknown) => saver.put({ configurable: { thread_id: thread } }, emptyCheckpoint(), meta, {});
      await expect(put(undefined)).rejects.toMatchObject({ code: "invalid_input" });
      await expect(put("nul\u0000")).rejects.toMatchObject({ code: "invalid_input" });
      await expect(put({ $gt: "" })).rejects.toMatchObject({ code: "invalid_input" });
      await put("__proto__");
      expect(await saver.getTuple({ configurable: { thread_id: "__proto__" } })).toBeDefined();
      const hostile = {
        ...emptyCheckpoint(),
        channel_values: { x: JSON.parse('{"__proto__":{"polluted":true}}') },
        channel_versions: { x: 1 },
      };
      await saver.put({ configurable: { thread_id: "h" } }, hostile, meta, { x: 1 });
      const back = (await saver.getTuple({ configurable: { thread_id: "h" } }))!.checkpoint.channel_values.x as object;
      expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
      expect((back as { polluted?: boolean }).polluted).toBeUndefined();
      await saver.close();
    });
  });
