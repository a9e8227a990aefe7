// LangGraph's own savers, as their documentation sets them up.
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

export function sqliteSaver(path) {
  const saver = SqliteSaver.fromConnString(path);
  saver.setup();
  // Done means durable, as in Cairn: by default this build would lose the last commits in a power cut.
  saver.db.pragma("synchronous = FULL");
  return saver;
}

/** Also counts the messages that go to the server, each of which is waited for. */
export async function postgresSaver(url) {
  const saver = PostgresSaver.fromConnString(url);
  await saver.setup();
  return saver;
}
