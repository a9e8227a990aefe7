import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { staticEmbedder } from "../../../src/embedders/local/static.ts";
import { killProcess, removeFolder } from "../../support/processes.ts";

let dataDir: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-shared-"));
});
afterEach(async () => {
  for (const child of children.splice(0)) await killProcess(child);
  await removeFolder(dataDir);
});

interface Figures {
  readonly calls: number;
  readonly leads: boolean;
  readonly sent: number;
}

/** A process that embeds. A pace makes its model slow; a tolerant one does not give up a leader that is slow. */
function startSession({ paceMs = 0, isTolerant = true } = {}) {
  const child = fork(join(import.meta.dirname, "session.mjs"), [dataDir, `${paceMs}`, `${isTolerant}`], { stdio: "inherit" });
  children.push(child);
  const waiting = new Map<number, (reply: never) => void>();
  let next = 0;
  child.on("message", (reply: { id: number }) => waiting.get(reply.id)?.(reply as never));
  const ask = <T>(message: object) =>
    new Promise<T>((resolve) => {
      waiting.set(++next, resolve);
      child.send({ id: next, ...message });
    });
  return {
    child,
    embed: async (texts: readonly string[]) => (await ask<{ vectors: string[] }>({ texts })).vectors,
    figures: () => ask<Figures>({}),
  };
}

async function expectedVectors(texts: readonly string[]): Promise<string[]> {
  const model = staticEmbedder();
  const vectors = await model.embed(texts);
  await model.close();
  return vectors.map((vector) => Buffer.from(vector.buffer).toString("base64"));
}

const TEXTS = ["parseJSONFile reads a file", "Der Ofen ist zu heiß", "half a pair \ud83d", "", "日本語 text", "x".repeat(40_000)];

describe("processes that share a model", () => {
  it("get the vectors of the model itself, bit by bit, and load it once", async () => {
    const sessions = Array.from({ length: 4 }, () => startSession());
    const vectors = await Promise.all(sessions.map((session) => session.embed(TEXTS)));
    const expected = await expectedVectors(TEXTS);
    for (const each of vectors) expect(each).toEqual(expected);
    const figures = await Promise.all(sessions.map((session) => session.figures()));
    expect(figures.map(({ calls }) => calls).sort()).toEqual([0, 0, 0, 4 * TEXTS.length]);
  });

  it("lose nothing when the leader is killed with requests in flight, again and again", async () => {
    const sessions = Array.from({ length: 4 }, () => startSession({ paceMs: 30 }));
    const running = new Set(sessions);
    for (const session of sessions) await session.embed(["warm up"]);
    while (running.size > 1) {
      const figures = await Promise.all([...running].map(async (session) => ({ session, ...(await session.figures()) })));
      const leader = figures.find(({ leads }) => leads)!.session;
      const others = [...running].filter((session) => session !== leader);
      const texts = others.map((_, index) => Array.from({ length: 40 }, (__, number) => `text ${number} of ${index}`));
      const waiting = others.map((session, index) => session.embed(texts[index]!));
      const { calls } = figures.find(({ session }) => session === leader)!;
      await expect.poll(async () => (await leader.figures()).calls).toBeGreaterThan(calls); // the requests have reached it
      await killProcess(leader.child);
      running.delete(leader);
      for (const [index, vectors] of (await Promise.all(waiting)).entries()) expect(vectors).toEqual(await expectedVectors(texts[index]!));
      const leads = await Promise.all(others.map(async (session) => (await session.figures()).leads));
      expect(leads.filter(Boolean)).toHaveLength(1);
    }
    const sockets = readdirSync(join(dataDir, "embedders")).filter((file) => file.endsWith(".sock"));
    expect(sockets).toHaveLength(1); // those of killed leaders are removed
  });

  it("embed for themselves while the leader is stopped, and share again when it continues", async () => {
    const hasty = { isTolerant: false };
    const leader = startSession(hasty);
    await leader.embed(["first"]);
    const [connected, later] = [startSession(hasty), startSession(hasty)];
    await connected.embed(["second"]);
    const before = (await connected.figures()).calls + (await later.figures()).calls;
    leader.child.kill("SIGSTOP");
    await expect.poll(() => readFileSync(`/proc/${leader.child.pid}/stat`, "utf8")).toMatch(/\) T /);
    const expected = await expectedVectors(["while it hangs"]);
    expect(await Promise.all([connected.embed(["while it hangs"]), later.embed(["while it hangs"])])).toEqual([expected, expected]);
    expect((await connected.figures()).calls + (await later.figures()).calls).toBeGreaterThan(before);
    leader.child.kill("SIGCONT");
    // One of the three leads in the end: the old leader if it renewed its lease in time, else another.
    await expect
      .poll(async () => {
        const [earlier] = await Promise.all([later.figures(), connected.embed(["again"]), leader.embed(["again"])]);
        await later.embed(["again"]);
        const after = await later.figures();
        return after.leads || after.sent > earlier.sent;
      })
      .toBe(true);
  });

  it("end without leaving a lease, a socket or a process behind", async () => {
    const [leader, follower] = [startSession(), startSession()];
    await leader.embed(["first"]);
    await follower.embed(["second"]);
    for (const { child } of [leader, follower]) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.disconnect();
      await ended;
    }
    expect(readdirSync(join(dataDir, "embedders"))).toEqual([]);
  });
});
