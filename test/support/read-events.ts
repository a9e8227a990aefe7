/** An event of a stream as it arrived. */
export interface ReceivedEvent {
  readonly type: string;
  readonly id?: string | undefined;
  readonly data: Record<string, unknown>;
}

/** Reads a response of server-sent events. */
export function readEvents(response: Response) {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  const ready: ReceivedEvent[] = [];
  const comments: string[] = [];
  let text = "";
  let isDone = false;
  let readyId: string | undefined;

  async function fill(): Promise<void> {
    const { value, done } = await reader.read();
    isDone = done;
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop()!;
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (block.startsWith(":")) comments.push(block);
      else if (fields.get("event") === "ready") readyId = fields.get("id");
      else if (fields.has("data")) ready.push({ type: fields.get("event")!, id: fields.get("id"), data: JSON.parse(fields.get("data")!) });
    }
  }

  return {
    comments,
    /** Returns the next event, or `undefined` at the end of the stream. */
    async next(): Promise<ReceivedEvent | undefined> {
      while (ready.length === 0 && !isDone) await fill();
      return ready.shift();
    },
    async take(count: number): Promise<ReceivedEvent[]> {
      const events: ReceivedEvent[] = [];
      while (events.length < count) {
        const event = await this.next();
        if (!event) break;
        events.push(event);
      }
      return events;
    },
    /** Reads until a comment arrives. */
    async untilComment(): Promise<void> {
      const before = comments.length;
      while (comments.length === before && !isDone) await fill();
    },
    /** Returns the id of the `ready` event, with which each stream starts. */
    async untilReady(): Promise<string | undefined> {
      while (readyId === undefined && !isDone) await fill();
      return readyId;
    },
    close: () => reader.cancel(),
  };
}
