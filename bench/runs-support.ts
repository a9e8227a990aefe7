/** The measured part of LangGraph's saver interface, which both implementations have. */
export interface Saver {
  put(config: Config, checkpoint: object, metadata: object, newVersions: object): Promise<Config>;
  getTuple(config: Config): Promise<unknown>;
}

export interface Config {
  readonly configurable?: Record<string, unknown>;
}

/** Returns a conversation of about this many bytes. */
export function stateOf(bytes: number): { messages: object[] } {
  const content = "What the agent said in this turn, and what it found. ".repeat(2);
  return {
    messages: Array.from({ length: Math.round(bytes / 170) }, (_, i) => ({
      id: `message-${i}`,
      role: i % 2 ? "user" : "assistant",
      content,
      tokens: i,
    })),
  };
}

/** Returns a thread that grows by one checkpoint with each put; each is the child of the previous one. */
export function threadOf(
  saver: Saver,
  state: { messages: object[] },
  threadId: string,
): { put: () => Promise<unknown>; get: () => Promise<unknown> } {
  let count = 0;
  let config: Config = { configurable: { thread_id: threadId, checkpoint_ns: "" } };
  return {
    async put() {
      count++;
      const id = `${count.toString(16).padStart(8, "0")}-0000-6000-8000-000000000000`;
      const versions = { messages: count };
      const checkpoint = { v: 4, id, ts: new Date().toISOString(), channel_values: state, channel_versions: versions, versions_seen: {} };
      config = await saver.put(config, checkpoint, { source: "loop", step: count, parents: {} }, versions);
    },
    get: () => saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: "" } }),
  };
}

/** Rounds before the measured ones: code that is not optimised yet would distort the first figures. */
const WARM_UP = 4;

/** Measures microseconds of CPU per call, in blocks that take turns, so that other load affects all candidates equally. */
export async function cpuInTurns(
  candidates: Readonly<Record<string, () => Promise<unknown>>>,
  { calls, atOnce, rounds = 9 }: { readonly calls: number; readonly atOnce: number; readonly rounds?: number },
): Promise<Record<string, number[]>> {
  const taken: Record<string, number[]> = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
  for (let round = -WARM_UP; round < rounds; round++)
    for (const [name, call] of Object.entries(candidates)) {
      const before = process.cpuUsage();
      let left = calls;
      const worker = async () => {
        while (left-- > 0) await call();
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) taken[name]!.push((user + system) / calls);
    }
  return taken;
}
