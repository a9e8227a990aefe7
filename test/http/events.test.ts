import { afterEach, describe, expect, it } from "vitest";
import { httpHandler } from "../../src/http/app.ts";
import { type Cairn, open } from "../../src/index.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";
import { readEvents } from "../support/read-events.ts";

const P = "/home/me/project";
const Q = "/home/me/other";
const opened: Cairn[] = [];
afterEach(async () => {
  for (const cairn of opened.splice(0)) await cairn.close();
});

async function server(options: Partial<Parameters<typeof httpHandler>[0]> = {}) {
  const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  opened.push(cairn);
  const handle = httpHandler({ cairn, localToken: async () => TEST_TOKEN, ...options });
  const follow = async (query = "", headers: Record<string, string> = bearer(TEST_TOKEN)) => {
    const response = await handle(new Request(`http://localhost/v1/events${query}`, { headers }));
    return { response, ...readEvents(response) };
  };
  const save = (projectPath: string, summary: string) => cairn.checkpoints.save({ projectPath, summary });
  return { cairn, handle, follow, save };
}

describe("GET /v1/events", () => {
  it("sends changes with ids and no text of the record", async () => {
    const { cairn, follow, save } = await server();
    const stream = await follow();
    expect(stream.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const { id } = await save(P, "a summary that stays private");
    await cairn.checkpoints.update({ projectPath: P, id, summary: "changed" });
    await cairn.checkpoints.delete({ projectPath: P, id });
    await cairn.checkpoints.restore({ projectPath: P, id });
    const events = await stream.take(4);
    expect(events.map(({ type, data }) => [type, data.kind, data.action, data.id, data.project_path])).toEqual(
      ["saved", "edited", "deleted", "restored"].map((action) => ["change", "checkpoint", action, id, P]),
    );
    expect(JSON.stringify(events)).not.toMatch(/private|changed/);
    await stream.close();
  });

  it("continues after Last-Event-ID, also in a project that was silent before", async () => {
    const { follow, save } = await server();
    await save(P, "before");
    await save(Q, "before");
    const first = await follow();
    const { id: one } = await save(P, "one");
    const [event] = await first.take(1);
    expect(event!.data.id).toBe(one);
    await first.close();
    const { id: two } = await save(P, "two");
    const { id: three } = await save(Q, "three");
    const second = await follow("", { ...bearer(TEST_TOKEN), "last-event-id": event!.id! });
    const events = (await second.take(3)).filter(({ data }) => data.kind === "checkpoint");
    expect(new Set(events.map(({ data }) => data.id))).toEqual(new Set([two, three]));
    await second.close();
  });

  it("loses nothing between two streams of which the first received no event", async () => {
    const { follow, save } = await server();
    await save(P, "before");
    const first = await follow();
    const readyId = (await first.untilReady())!;
    await first.close();
    const { id } = await save(P, "between");
    const second = await follow("", { ...bearer(TEST_TOKEN), "last-event-id": readyId });
    expect(await second.untilReady()).toBe(readyId);
    const events = await second.take(2); // the id includes a few seconds before the stream
    expect(events.map(({ data }) => data.id)).toContain(id);
    await second.close();
  });

  it("filters by project and refuses projects of other keys", async () => {
    const { cairn, follow, save } = await server();
    const { key } = await cairn.keys.create({ label: "reader", access: "read", projects: [P] });
    const limited = await follow("", bearer(key));
    const filtered = await follow(`?project_path=${encodeURIComponent(Q)}&project_path=${encodeURIComponent("/third")}`);
    const { id: inQ } = await save(Q, "q");
    const { id: inP } = await save(P, "p");
    expect((await limited.next())!.data).toMatchObject({ id: inP, project_path: P });
    expect((await filtered.next())!.data).toMatchObject({ id: inQ, project_path: Q });
    const { response } = await follow(`?project_path=${encodeURIComponent(Q)}`, bearer(key));
    expect(response.status).toBe(403);
    expect((await follow("?project_path=relative/path")).response.status).toBe(400);
    expect((await follow("?unknown=1")).response.status).toBe(400);
    expect((await follow("", {})).response.status).toBe(401);
    await limited.close();
    await filtered.close();
  });

  it("sends a reset for an id that it cannot continue after", async () => {
    const { follow, save } = await server();
    await save(P, "x");
    const damaged = await follow("", { ...bearer(TEST_TOKEN), "last-event-id": "not an id" });
    expect((await damaged.next())!.type).toBe("reset");
    await damaged.close();
    const [first] = await (async () => {
      const stream = await follow();
      await save(P, "y");
      const events = await stream.take(1);
      await stream.close();
      return events;
    })();
    const other = first!.id!.replace(/:\d+$/, ":999999");
    const gone = await follow("", { ...bearer(TEST_TOKEN), "last-event-id": other });
    expect(await gone.next()).toMatchObject({ type: "reset", data: { project_path: P } });
    await gone.close();
  });

  it("sends heartbeats while nothing happens", async () => {
    const { follow } = await server({ eventStreams: { heartbeatMs: 10 } });
    const stream = await follow();
    await stream.untilComment();
    expect(stream.comments[0]).toBe(": heartbeat");
    await stream.close();
  });

  it("drops a client that does not read, with the id to resume after", async () => {
    const { follow, save } = await server({ eventStreams: { stalledMs: 100 } });
    await save(P, "before");
    const stream = await follow();
    await save(P, "read");
    expect((await stream.next())!.type).toBe("change");
    for (let index = 0; index < 3; index++) {
      await save(P, `unread ${index}`);
      await new Promise((resolve) => setTimeout(resolve, 700)); // each is one look, and fills one more buffer
    }
    const events = await stream.take(10);
    expect(events.at(-1)!.type).toBe("dropped");
    expect(events.length).toBeGreaterThan(1);
    expect(events.at(-1)!.data.resume_after).toBe(events.at(-2)!.id);
  });

  it("limits the streams of a caller and frees a slot when a stream ends", async () => {
    const { follow } = await server({ maxStreamsPerCaller: 4 });
    const streams = [await follow(), await follow()];
    expect((await follow()).response.status).toBe(429);
    await streams[0]!.close();
    const again = await follow();
    expect(again.response.status).toBe(200);
    for (const stream of [streams[1]!, again]) await stream.close();
  });

  it("ends streams when the server shuts down, and after their lifetime", async () => {
    const closing = new AbortController();
    const { follow } = await server({ closing: closing.signal });
    const stream = await follow();
    closing.abort();
    expect(await stream.next()).toBeUndefined();
    const short = await server({ eventStreams: { lifetimeMs: 20 } });
    expect(await (await short.follow()).next()).toBeUndefined();
  });
});
