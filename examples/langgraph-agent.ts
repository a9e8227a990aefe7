/** A LangGraph agent that stores its conversation in Cairn. Run it with: npm run example -- langgraph-agent */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { CairnSaver } from "../src/adapters/langgraph/index.ts"; // in your own project: from "cairn-memory/langgraph"

/** Replaces a language model, so that the example needs no key: it calls a tool, then answers with the result. */
function model(messages: readonly BaseMessage[]): AIMessage {
  const last = messages.at(-1);
  if (last instanceof ToolMessage) return new AIMessage(`The forecast is: ${last.content}.`);
  return new AIMessage({ content: "", tool_calls: [{ id: "call-1", name: "forecast", args: { city: "Oslo" } }] });
}

const build = (saver: CairnSaver) =>
  new StateGraph(MessagesAnnotation)
    .addNode("agent", ({ messages }) => ({ messages: [model(messages)] }))
    .addNode("tool", () => {
      const allowed = interrupt({ question: "May I look up the forecast?" });
      return { messages: [new ToolMessage({ tool_call_id: "call-1", content: allowed ? "rain" : "unknown" })] };
    })
    .addEdge(START, "agent")
    .addConditionalEdges("agent", ({ messages }) => ((messages.at(-1) as AIMessage).tool_calls?.length ? "tool" : END))
    .addEdge("tool", "agent")
    .compile({ checkpointer: saver });

const folder = mkdtempSync(join(tmpdir(), "cairn-example-"));
const path = join(folder, "langgraph.db");
const thread = { configurable: { thread_id: "weather" } };

const first = new CairnSaver({ storage: "sqlite", path });
await build(first).invoke({ messages: [new HumanMessage("What is the weather in Oslo?")] }, thread);
await first.close(); // the run waits for an answer without its process

const second = new CairnSaver({ storage: "sqlite", path });
const { messages } = await build(second).invoke(new Command({ resume: true }), thread);
assert.equal(messages.at(-1)?.content, "The forecast is: rain.");
console.log(messages.map((message) => `${message.getType()}: ${message.content}`).join("\n"));

const freed = await second.prune({ keepLast: 1 });
assert.ok(freed.checkpoints > 0);
console.log(`retention removed ${freed.checkpoints} checkpoints, ${freed.bytes} bytes`);
await second.close();
rmSync(folder, { recursive: true });
