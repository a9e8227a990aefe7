/** One message of a stream of server-sent events. */
export interface StreamedMessage {
  readonly type: string;
  readonly data: string;
}

/** Splits the text of one connection into messages. A comment, such as a heartbeat, is no message. */
export function eventParser(resumedAfter?: string) {
  let rest = "";
  let lastId = resumedAfter;
  return {
    /** The id to resume after. */
    lastId: () => lastId,
    push(text: string): StreamedMessage[] {
      const blocks = (rest + text).split("\n\n");
      rest = blocks.pop()!;
      return blocks.flatMap((block) => {
        const fields = new Map(block.split("\n").map((line) => line.split(/: ?(.*)/s) as [string, string]));
        lastId = fields.get("id") ?? lastId;
        const data = fields.get("data");
        return data === undefined ? [] : [{ type: fields.get("event") ?? "message", data }];
      });
    },
  };
}
