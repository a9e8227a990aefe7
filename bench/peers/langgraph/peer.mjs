// LangGraph's own savers, as their documentation sets them up.
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

export function sqliteSaver(path) {
  const saver = SqliteSaver.fromConnString(path);
  saver.setup();
  // A put is durable when it resolves, as in Cairn. The default could lose the last commits in a power cut.
  saver.db.pragma("synchronous = FULL");
  return saver;
}

/** Also counts the messages to the server; the client waits for each. */
export async function postgresSaver(url) {
  const saver = PostgresSaver.fromConnString(url);
  await saver.setup();
  return saver;
}
