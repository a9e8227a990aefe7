import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { isAbsolute, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeFrame } from "../../../src/embedders/shared/frame.ts";
import { encodeMessage, identityOf } from "../../../src/embedders/shared/protocol.ts";
import { type SharedEmbedder, sharedEmbedder } from "../../../src/embedders/shared/shared-embedder.ts";
import { newOwner } from "../../../src/scheduling/owner.ts";
import { type LeaderLeaseOptions, leaderLease, readLeaders } from "../../../src/stores/file/leader-lease.ts";
import { type TestEmbedder, testEmbedder } from "../../support/embedders.ts";

let dataDir: string;
const opened: (() => unknown)[] = [];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-shared-"));
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  rmSync(dataDir, { recursive: true, force: true });
});

interface Session extends SharedEmbedder {
  readonly own: TestEmbedder;
}

interface SessionOptions extends Partial<LeaderLeaseOptions> {
  readonly mayLead?: boolean;
  readonly own?: TestEmbedder;
  readonly silentTurns?: number;
  readonly coverageMs?: number;
  readonly now?: () => number;
}

/** One process of several, as far as the file system and the socket can tell: only the lease's owner has the same number. */
function session(options: SessionOptions = {}): Session {
  const { mayLead = true, own = testEmbedder(), silentTurns = 10_000, coverageMs = 600_000, now, ...leaseOptions } = options;
  const lease = leaderLease({ dataDir, model: own, electionMs: 600_000, ...leaseOptions });
  const timing = { turnMs: 20, silentTurns, requestTurns: 10_000, coverageMs };
  const shared = Object.assign(sharedEmbedder(own, { lease, mayLead, timing, now }), { own });
  opened.push(() => shared.close());
  return shared;
}

const folder = () => join(dataDir, "embedders");
const sockets = () => readdirSync(folder()).filter((file) => file.endsWith(".sock"));
const leaseFile = () => join(folder(), readdirSync(folder()).find((file) => file.endsWith(".lease"))!);
const address = () => JSON.parse(readFileSync(leaseFile(), "utf8")).address as string;

describe("a shared embedder", () => {
  it("elects one of many that need a vector at the same time, which embeds for all", async () => {
    const sessions = Array.from({ length: 12 }, () => session());
    const texts = sessions.map((_, index) => `text of session ${index}`);
    const vectors = await Promise.all(sessions.map((one, index) => one.embed([texts[index]!])));
    expect(vectors.map(([vector]) => vector)).toEqual(await testEmbedder().embed(texts));
    expect(sessions.filter((one) => one.figures().leads)).toHaveLength(1);
    expect(sessions.filter(({ own }) => own.calls > 0)).toHaveLength(1);
    expect(sockets()).toHaveLength(1);
  });

  it("does nothing before the first text", async () => {
    session();
    expect(existsSync(folder())).toBe(false);
  });

  it("sends long batches in slices, in order, and only what the model reads", async () => {
    const leader = session();
    await leader.embed(["first"]);
    const own = Object.assign(testEmbedder(), { textChars: 40 });
    const follower = session({ own });
    const texts = Array.from({ length: 100 }, (_, index) => `number ${index} `.padEnd(5_000, "x "));
    const cut = texts.map((text) => text.slice(0, 40));
    expect(await follower.embed(texts)).toEqual(await testEmbedder().embed(cut));
    expect({ calls: own.calls, sent: follower.figures().sent, served: leader.figures().served }).toEqual({
      calls: 0,
      sent: 1,
      served: 100,
    });
  });

  it("asks the leader for the coverage too", async () => {
    const known = Object.assign(testEmbedder(), { coverage: async () => 0.25 });
    const leader = session({ own: known });
    await leader.embed(["first"]);
    const follower = session({ own: Object.assign(testEmbedder(), { coverage: async () => Promise.reject(new Error("loaded")) }) });
    expect(await follower.coverage?.("words")).toBe(0.25);
    expect(session().coverage).toBeUndefined();
  });

  it("passes on how another thread opens the model", () => {
    const threadModel = { module: "model.js", create: "model", options: {} };
    expect(session({ own: Object.assign(testEmbedder(), { threadModel }) }).threadModel).toEqual(threadModel);
  });

  it("never leads in a short command, but asks a leader", async () => {
    const command = session({ mayLead: false });
    await command.embed(["alone"]);
    expect({ calls: command.own.calls, folder: existsSync(folder()) }).toEqual({ calls: 1, folder: false });
    await session().embed(["first"]);
    await command.embed(["asked"]);
    expect(command.own.calls).toBe(1);
  });

  it("lets another take over when the leader closes, and cleans up at the end", async () => {
    const [first, second, third] = [session(), session(), session()];
    for (const one of [first, second, third]) await one.embed(["text"]);
    await first.close();
    expect(readLeaders(dataDir)).toEqual([]);
    await Promise.all([second.embed(["again"]), third.embed(["again"])]);
    expect([second, third].filter((one) => one.figures().leads)).toHaveLength(1);
    await Promise.all([second.close(), third.close()]);
    expect(readdirSync(folder())).toEqual([]);
  });

  it("repeats requests that wait when the leader ends", async () => {
    const leader = session();
    await leader.embed(["first"]);
    const followers = [session(), session()];
    for (const follower of followers) await follower.embed(["connected"]);
    let started = 0;
    leader.own.embed = (_, { signal } = {}) => {
      started++;
      return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    };
    const waiting = followers.map((follower) => follower.embed(["must not be lost"]));
    await expect.poll(() => started).toBe(1); // one is in the model, the other in the queue
    await leader.close();
    const expected = await testEmbedder().embed(["must not be lost"]);
    expect(await Promise.all(waiting)).toEqual([expected, expected]);
    expect(followers.filter((one) => one.figures().leads)).toHaveLength(1);
  });

  it("embeds for itself when the leader fails, and asks it again", async () => {
    const leader = session();
    await leader.embed(["first"]);
    const follower = session();
    leader.own.mood = "down";
    await follower.embed(["now"]);
    expect({ calls: follower.own.calls, fallbacks: follower.figures().fallbacks }).toEqual({ calls: 1, fallbacks: 1 });
    leader.own.mood = "well";
    await follower.embed(["later"]);
    expect(follower.own.calls).toBe(1);
  });

  it("rejects with the reason of an abort, and the leader stops its work", async () => {
    const leader = session();
    await leader.embed(["first"]);
    const follower = session();
    await follower.embed(["connected"]);
    let work: "waiting" | "started" | "stopped" = "waiting";
    leader.own.embed = (_, { signal } = {}) => {
      work = "started";
      return new Promise((_resolve, reject) =>
        signal?.addEventListener("abort", () => {
          work = "stopped";
          reject(signal.reason);
        }),
      );
    };
    const abort = new AbortController();
    const waiting = follower.embed(["text"], { signal: abort.signal });
    await expect.poll(() => work).toBe("started");
    abort.abort(new Error("no longer needed"));
    await expect(waiting).rejects.toThrow("no longer needed");
    await expect.poll(() => work).toBe("stopped");
    expect(follower.own.calls).toBe(0);
  });

  it("embeds for itself for a minute after a leader did not answer in the caller's time", async () => {
    const leader = session();
    await leader.embed(["first"]);
    let nowMs = 0;
    const follower = session({ now: () => nowMs });
    await follower.embed(["connected"]);
    leader.own.mood = "hanging";
    const slow = follower.embed(["one"], { signal: AbortSignal.timeout(20) });
    await expect(slow).rejects.toMatchObject({ name: "TimeoutError" });
    nowMs = 59_999;
    await follower.embed(["two"]);
    expect({ calls: follower.own.calls, fallbacks: follower.figures().fallbacks }).toEqual({ calls: 1, fallbacks: 1 });
    leader.own.mood = "well";
    nowMs = 60_000;
    await follower.embed(["three"]);
    expect({ calls: follower.own.calls, leads: follower.figures().leads }).toEqual({ calls: 1, leads: false });
  });

  it("limits the time of the coverage, and then reads the own vocabulary", async () => {
    const leader = session({ own: Object.assign(testEmbedder(), { coverage: () => new Promise<number>(() => {}) }) });
    await leader.embed(["first"]);
    const follower = session({ own: Object.assign(testEmbedder(), { coverage: async () => 0.5 }), coverageMs: 20 });
    await expect(follower.coverage?.("words")).rejects.toMatchObject({ name: "TimeoutError" });
    expect(await follower.coverage?.("words")).toBe(0.5);
  });

  it("answers the coverage while the model embeds", async () => {
    const leader = session({ own: Object.assign(testEmbedder(), { coverage: async () => 0.25 }) });
    await leader.embed(["first"]);
    const follower = session({ own: Object.assign(testEmbedder(), { coverage: async () => 0.5 }) });
    let started = false;
    leader.own.embed = (_, { signal } = {}) => {
      started = true;
      return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    };
    const abort = new AbortController();
    const waiting = follower.embed(["text"], { signal: abort.signal });
    await expect.poll(() => started).toBe(true);
    expect(await follower.coverage?.("words")).toBe(0.25);
    abort.abort(new Error("no longer needed"));
    await expect(waiting).rejects.toThrow("no longer needed");
  });

  it("embeds for itself beside a leader of another version", async () => {
    const leader = session();
    await leader.embed(["first"]);
    const stored = JSON.parse(readFileSync(leaseFile(), "utf8"));
    // Another version speaks on the socket: it refuses this one's hello.
    const other = createServer((socket) => socket.once("data", () => socket.end(encodeMessage({ name: "refusal", reason: "cairn" }))));
    const elsewhere = join(folder(), "other.sock");
    await new Promise<void>((resolve) => other.listen(elsewhere, resolve));
    opened.push(() => new Promise((resolve) => other.close(resolve)));
    writeFileSync(leaseFile(), JSON.stringify({ ...stored, owner: newOwner(), address: elsewhere }), { mode: 0o600 });
    const follower = session();
    await follower.embed(["one"]);
    await follower.embed(["two"]);
    expect({ calls: follower.own.calls, leads: follower.figures().leads }).toEqual({ calls: 2, leads: false });
  });

  it("leaves the lease to a leader that drops the connection before the welcome", async () => {
    await session().embed(["first"]);
    const stored = JSON.parse(readFileSync(leaseFile(), "utf8"));
    const full = createServer((socket) => socket.destroy()); // as with too many connections or open files
    const elsewhere = join(folder(), "other.sock");
    await new Promise<void>((resolve) => full.listen(elsewhere, resolve));
    opened.push(() => new Promise((resolve) => full.close(resolve)));
    const owner = newOwner();
    writeFileSync(leaseFile(), JSON.stringify({ ...stored, owner, address: elsewhere }), { mode: 0o600 });
    const follower = session();
    await follower.embed(["one"]);
    expect({ calls: follower.own.calls, leads: follower.figures().leads }).toEqual({ calls: 1, leads: false });
    expect(JSON.parse(readFileSync(leaseFile(), "utf8")).owner).toBe(owner);
  });

  it("leaves the lease to a leader on another machine until it expires, and embeds for itself meanwhile", async () => {
    const leader = session({ renewMs: 1_000_000 });
    await leader.embed(["first"]);
    const stored = JSON.parse(readFileSync(leaseFile(), "utf8"));
    const owner = newOwner().replace(/^[^+/]+/, "other-machine");
    // The socket is a file of the shared folder, but no process of this machine listens on it.
    const socket = join(folder(), "gone.sock");
    writeFileSync(leaseFile(), JSON.stringify({ ...stored, owner, address: socket }), { mode: 0o600 });
    const follower = session();
    await follower.embed(["one"]);
    await follower.embed(["two"]);
    expect({ calls: follower.own.calls, leads: follower.figures().leads }).toEqual({ calls: 2, leads: false });
    expect(JSON.parse(readFileSync(leaseFile(), "utf8")).owner).toBe(owner);
    utimesSync(leaseFile(), new Date(), new Date(Date.now() - 60_000));
    await follower.embed(["three"]);
    expect(follower.figures().leads).toBe(true);
  });

  it("has a lease of its own for each model", async () => {
    const [one, other] = [session(), session({ own: testEmbedder({ version: "2" }) })];
    await Promise.all([one.embed(["text"]), other.embed(["text"])]);
    expect([one.figures().leads, other.figures().leads]).toEqual([true, true]);
  });

  it("steps down when another process holds its lease, or when its socket was removed", async () => {
    const leader = session({ renewMs: 10 });
    await leader.embed(["first"]);
    writeFileSync(leaseFile(), JSON.stringify({ ...JSON.parse(readFileSync(leaseFile(), "utf8")), owner: newOwner() }), { mode: 0o600 });
    await expect.poll(() => leader.figures().leads).toBe(false);
    rmSync(leaseFile());
    await leader.embed(["second"]);
    expect(leader.figures().leads).toBe(true);
    rmSync(address());
    await expect.poll(() => leader.figures().leads).toBe(false);
  });

  it("replaces a leader that no longer renews its lease", async () => {
    const hung = session({ renewMs: 1_000_000 });
    await hung.embed(["first"]);
    utimesSync(leaseFile(), new Date(), new Date(Date.now() - 60_000));
    const follower = session();
    await follower.embed(["text"]);
    expect({ leads: follower.figures().leads, sockets: sockets().length }).toEqual({ leads: true, sockets: 1 });
  });

  it("uses a shorter folder for the socket if the data folder's path is too long", async () => {
    const long = join(dataDir, "long".repeat(25));
    const runtimeDir = mkdtempSync(join(tmpdir(), "cairn-run-"));
    opened.push(() => rmSync(runtimeDir, { recursive: true }));
    const [leader, follower] = [session({ dataDir: long, runtimeDir }), session({ dataDir: long, runtimeDir })];
    await leader.embed(["first"]);
    await follower.embed(["second"]);
    expect({ leads: leader.figures().leads, calls: follower.own.calls }).toEqual({ leads: true, calls: 0 });
    const alone = session({ dataDir: `${long}2` });
    await alone.embed(["first"]);
    expect({ leads: alone.figures().leads, calls: alone.own.calls }).toEqual({ leads: false, calls: 1 });
  });

  it("has an absolute address, also with a relative data folder", async () => {
    await session({ dataDir: relative(process.cwd(), dataDir) }).embed(["first"]);
    expect(isAbsolute(address())).toBe(true);
  });

  it.each(["", "run"])("does not use the runtime folder %j, which is not absolute", async (runtimeDir) => {
    const alone = session({ dataDir: join(dataDir, "long".repeat(25)), runtimeDir });
    await alone.embed(["first"]);
    expect({ leads: alone.figures().leads, calls: alone.own.calls }).toEqual({ leads: false, calls: 1 });
  });
});

describe("the socket", () => {
  it("can be opened by its user only", async () => {
    await session().embed(["first"]);
    const modes = [folder(), leaseFile(), address()].map((path) => (lstatSync(path).mode & 0o777).toString(8));
    expect(modes).toEqual(["700", "600", "600"]);
  });

  it("is not used if others could have made it", async () => {
    await session().embed(["first"]);
    chmodSync(folder(), 0o777);
    const follower = session();
    await follower.embed(["second"]);
    expect({ calls: follower.own.calls, leads: follower.figures().leads }).toEqual({ calls: 1, leads: false });
    chmodSync(folder(), 0o700);
    chmodSync(leaseFile(), 0o666);
    const other = session({ mayLead: false });
    await other.embed(["second"]);
    expect(other.own.calls).toBe(1);
  });

  const hello = (own: TestEmbedder, secret: string) => encodeMessage({ name: "hello", identity: identityOf(own), secret });
  const hugeHeader = () => Buffer.from([0xff, 0xff, 0xff, 0xff, 3]);
  it.each<[string, (own: TestEmbedder, secret: string) => Buffer]>([
    ["garbage", () => Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["an oversized frame before the hello", () => hugeHeader()],
    ["an oversized frame after the hello", (own, secret) => Buffer.concat([hello(own, secret), hugeHeader()])],
    ["a request before the hello", () => encodeMessage({ name: "embed", id: 1, purpose: "query", texts: ["secret"] })],
    ["a wrong secret", (own, secret) => hello(own, `${secret}x`)],
    ["another version of the model", (own, secret) => hello({ ...own, version: "other" }, secret)],
    [
      "too many texts",
      (own, secret) => Buffer.concat([hello(own, secret), jsonFrame(3, { id: 1, purpose: "query", texts: Array(17).fill("") })]),
    ],
    [
      "too many requests at once",
      (own, secret) =>
        Buffer.concat([hello(own, secret), ...Array.from({ length: 17 }, (_, id) => encodeMessage({ name: "coverage", id, text: "" }))]),
    ],
    ["an unknown message", (own, secret) => Buffer.concat([hello(own, secret), encodeFrame({ type: 99, body: Buffer.alloc(0) })])],
  ])("closes a connection that sends %s, and still serves", async (_, bytes) => {
    const leader = session();
    await leader.embed(["first"]);
    const { secret } = JSON.parse(readFileSync(leaseFile(), "utf8"));
    const peer: Socket = connect(address());
    peer.on("error", () => {});
    peer.resume();
    const ended = new Promise((resolve) => peer.once("close", resolve));
    peer.write(bytes(leader.own, secret));
    await ended;
    const follower = session();
    await follower.embed(["second"]);
    expect({ calls: follower.own.calls, served: leader.figures().served }).toEqual({ calls: 0, served: 1 });
  });

  it.each<[string, Buffer[]]>([
    ["garbage", [Buffer.from("nonsense, and more of it")]],
    ["an oversized frame", [hugeHeader()]],
    [
      "vectors of a wrong length",
      [encodeMessage({ name: "welcome" }), encodeMessage({ name: "vectors", id: 1, values: new Float32Array(3) })],
    ],
    ["nothing", []],
  ])("is given up if a leader sends %s", async (_, answers) => {
    await session().embed(["first"]);
    const stored = JSON.parse(readFileSync(leaseFile(), "utf8"));
    const sent = [...answers];
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", () => void (sent.length > 0 && socket.write(sent.shift()!)));
    });
    const elsewhere = join(folder(), "other.sock");
    await new Promise<void>((resolve) => server.listen(elsewhere, resolve));
    opened.push(() => new Promise((resolve) => server.close(resolve)));
    writeFileSync(leaseFile(), JSON.stringify({ ...stored, owner: newOwner(), address: elsewhere }), { mode: 0o600 });
    const follower = session({ mayLead: false, silentTurns: 5 });
    expect(await follower.embed(["text"])).toEqual(await testEmbedder().embed(["text"]));
    expect(follower.own.calls).toBe(1);
  });
});

function jsonFrame(type: number, body: object): Buffer {
  return encodeFrame({ type, body: Buffer.from(JSON.stringify(body)) });
}
