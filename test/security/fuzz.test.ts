import { randomUUID } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { type Callers, createCallers } from "../attack/callers.ts";
import { type AttackAnswer, send, sendAll } from "../attack/client.ts";
import { explainBlocks, type Flight } from "../attack/fuzz/blocks.ts";
import { answerChecks } from "../attack/fuzz/checks.ts";
import { type DocumentedOperation, readOperations } from "../attack/fuzz/document.ts";
import { rawRequests } from "../attack/fuzz/raw.ts";
import { type FuzzRequest, fuzzRequests, maximalRequests } from "../attack/fuzz/requests.ts";
import type { Pools } from "../attack/fuzz/valid.ts";
import { callAs, findLiveTargets } from "../attack/live.ts";
import { type AttackedServer, startServer } from "../attack/server.ts";
import { OWN_FILES, plantWorld, type World } from "../attack/world.ts";

/** `npm run test:attack` also measures the event loop and the time of each call; `npm test` asserts nothing about time. */
const LONG = process.env.CAIRN_TEST_ATTACK === "1";
const REQUESTS = Number(process.env.CAIRN_TEST_ATTACK_REQUESTS ?? (LONG ? 20_000 : 1_500));
const SEED = Number(process.env.CAIRN_TEST_ATTACK_SEED ?? (LONG ? Date.now() % 1_000_000 : 20_261_116));
const IN_FLIGHT = LONG ? 8 : 16;
/** What a client on a busy machine sees beyond the operation's own limit. */
const MARGIN_MS = 5_000;
const BLOCK_LIMIT_MS = 250;
/** Generated requests delete too: after this many, the records are stored again that make the next ones reach deep. */
const REPLANT_EVERY = 100;
const WITNESS = "/projects/witness";

let world: World;
let callers: Callers;
let server: AttackedServer;
let document: { components: { schemas: Record<string, never> } };
let operations: readonly DocumentedOperation[];
let pools: Pools;

beforeAll(async () => {
  world = await plantWorld();
  callers = await createCallers(world);
  server = await startServer(world.folders, { measureLoop: LONG });
  const live = await findLiveTargets(server.port, callers.harness, world);
  await callAs(server.port, callers.harness, "POST", "/v1/checkpoint/save", { project_path: WITNESS, summary: "Witness" });
  document = await callAs(server.port, callers.harness, "GET", "/openapi.json");
  operations = readOperations(document);
  const projects = [world.own, world.other];
  pools = {
    project_path: projects,
    project: projects,
    of_project: projects,
    id: [world.ids.checkpoint, world.ids.knowledge, live.job, "my-knowledge"],
    run_id: [world.ids.run],
    system_id: [world.ids.system],
    query: ["harbour", "own harbour function", "*", '"a" OR b'],
    path: [world.file, OWN_FILES[0]!.path, "src/new.ts"],
    glob: ["src/**", "!src/**", "**/*.ts", "*", "**?**?**?**?**?!", `${"**/*a".repeat(20)}!`, `${"*a".repeat(30)}!`],
    cursor: live.cursors,
    to: ["postgres://127.0.0.1:1/none", "sqlite"],
  };
});
afterAll(async () => {
  await server?.stop();
  await world?.remove();
});

describe("requests generated from /openapi.json", () => {
  it(
    `get documented answers, without stack traces, and leave the server and its data sound (${REQUESTS} requests, seed ${SEED})`,
    async () => {
      expect(operations.length).toBeGreaterThan(50);
      console.log(`Fuzzing with seed ${SEED}; CAIRN_TEST_ATTACK_SEED=${SEED} repeats it.`);
      const some = ["no key", "write, own project", "admin, own project", "read, all projects"];
      const who = [callers.harness, ...callers.all.filter(({ name }) => some.includes(name))];
      const requests = fc.sample(fuzzRequests(operations, who, { schemas: document.components.schemas, pools }), {
        numRuns: REQUESTS,
        seed: SEED,
      });
      const largest = maximalRequests(operations, callers.harness, {
        schemas: document.components.schemas,
        pools: { ...pools, content: [MANY_QUESTIONS], records: [await manyCheckpoints()] },
      });
      const checks = answerChecks(document, world.folders.dataDir);
      const warmedUpAt = Date.now();
      const outcome: Outcome = { problems: [], statuses: {}, flights: [], overdue: [], slowest: [] };
      // One at a time, so that a block has one cause.
      for (const sent of largest) {
        await replant();
        const answer = await send(server.port, sent.request);
        note(outcome, -1, sent, answer, checks.problems(sent, answer));
      }
      await sendAll([...requests.entries()], IN_FLIGHT, async ([index, sent]) => {
        if (index % REPLANT_EVERY === 0) await replant();
        const answer = await send(server.port, sent.request);
        note(outcome, index, sent, answer, checks.problems(sent, answer));
      });
      if (LONG) {
        const blocks = server.blocks().filter(({ endedAt }) => endedAt > warmedUpAt);
        const longBlocks = explainBlocks(blocks, outcome.flights, BLOCK_LIMIT_MS);
        const worst = blocks
          .map(({ blockedMs }) => blockedMs)
          .sort((a, b) => b - a)
          .slice(0, 20);
        const { statuses, overdue, slowest, problems } = outcome;
        const report = {
          seed: SEED,
          requests: REQUESTS,
          statuses,
          worst_blocks_ms: worst,
          long_blocks: longBlocks,
          overdue,
          slowest,
          problems,
        };
        const path = process.env.CAIRN_TEST_ATTACK_REPORT;
        if (path) writeFileSync(path, JSON.stringify(report, null, 2));
        console.log(JSON.stringify({ ...report, long_blocks: longBlocks.length, problems: problems.length }, null, 2));
        expect.soft(overdue).toEqual([]);
        expect.soft(longBlocks).toEqual([]);
      }
      expect(firstOfEachKind(outcome.problems)).toEqual([]);
      await expectSound();
    },
    LONG ? 7_200_000 : undefined,
  );

  it("survives bytes that are no HTTP request", async () => {
    for (const raw of rawRequests(callers.harness.headers.authorization!)) {
      const answer = await send(server.port, { method: "RAW", path: "", headers: {}, raw });
      expect(answer.status >= 500 ? `${answer.status} to ${raw.toString("latin1").slice(0, 300)}` : "").toBe("");
      expect(answer.bytes).not.toMatch(/node:internal|\n\s+at /);
    }
    await expectSound();
  });

  it("leaves databases that pass their checks", async () => {
    await server.stop();
    const { DatabaseSync } = await loadEngine();
    const { dataDir, stateDir } = world.folders;
    const files = [dataDir, stateDir].flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".db"))
        .map((name) => join(folder, name)),
    );
    expect(files.length).toBeGreaterThan(3);
    for (const file of files) {
      const database = new DatabaseSync(file, { readOnly: true });
      expect(database.prepare("PRAGMA integrity_check").get(), file).toEqual({ integrity_check: "ok" });
      database.close();
    }
    const cairn = await open({ dataDir, stateDir, embedder: { kind: "none" } });
    for (const projectPath of await cairn.projects())
      expect(await cairn.databases.check({ projectPath }), projectPath).toMatchObject({ problems: [] });
    await cairn.close();
  });
});

const MANY_QUESTIONS = Array.from({ length: 5_000 }, (_, index) =>
  JSON.stringify({ id: `faq-${index}`, question: `How many of ${index} are there?`, answer: "Some words about it. ".repeat(10) }),
).join("\n");

/** As many records as one import takes, each as large as a checkpoint may be. */
async function manyCheckpoints(): Promise<unknown[]> {
  const { records } = await callAs(server.port, callers.harness, "POST", "/v1/checkpoint/export", { project_path: WITNESS });
  return Array.from({ length: 100 }, () => ({
    ...records[0],
    id: randomUUID(),
    description: "word ".repeat(2_000),
    project_path: world.own,
  }));
}

async function replant(): Promise<void> {
  const post = (path: string, input: object) => callAs(server.port, callers.harness, "POST", path, input);
  await post("/v1/checkpoint/save", { project_path: world.own, summary: "Own harbour", description: "harbour ".repeat(1_000) });
  await post("/v1/knowledge/save", { project_path: world.own, question: "Where is our harbour?", answer: "harbour ".repeat(2_000) });
  await post("/index", { project_path: world.own, files: OWN_FILES });
}

interface Outcome {
  readonly problems: { readonly request: string; readonly problem: string; readonly answer: string }[];
  readonly statuses: Record<string, number>;
  readonly flights: Flight[];
  readonly overdue: string[];
  slowest: { readonly request: string; readonly tookMs: number }[];
}

function note(outcome: Outcome, index: number, sent: FuzzRequest, answer: AttackAnswer, problems: readonly string[]): void {
  const { operation, caller, protocol, request } = sent;
  const name = `#${index} ${operation.name} ${protocol} as ${caller.name}: ${request.method} ${request.path.slice(0, 300)} ${String(request.body ?? "").slice(0, 600)}`;
  outcome.statuses[answer.status] = (outcome.statuses[answer.status] ?? 0) + 1;
  for (const problem of problems) outcome.problems.push({ request: name, problem, answer: answer.body.slice(0, 500) });
  if (!LONG) return;
  outcome.flights.push({ name, startedAt: answer.startedAt, endedAt: answer.startedAt + answer.tookMs });
  if (answer.tookMs > operation.timeoutMs + MARGIN_MS) outcome.overdue.push(`${Math.round(answer.tookMs)} ms: ${name}`);
  outcome.slowest = [...outcome.slowest, { request: name.slice(0, 300), tookMs: Math.round(answer.tookMs) }]
    .sort((a, b) => b.tookMs - a.tookMs)
    .slice(0, 10);
}

/** One example of each kind of problem: a thousand of the same kind would hide the others. */
function firstOfEachKind(problems: Outcome["problems"]): Outcome["problems"] {
  const kinds = new Map(problems.toReversed().map((one) => [`${one.request.split(" ")[1]} ${one.problem}`, one]));
  return [...kinds.values()].slice(0, 20);
}

/** The server lives, stores and returns what was stored before the attack. */
async function expectSound(): Promise<void> {
  expect(server.isRunning()).toBe(true);
  const list = await callAs(server.port, callers.harness, "POST", "/v1/checkpoint/list", { project_path: WITNESS });
  expect(list.checkpoints).toMatchObject([{ summary: "Witness" }]);
  const saved = await callAs(server.port, callers.harness, "POST", "/v1/checkpoint/save", {
    project_path: world.own,
    summary: "Still here",
  });
  const found = await callAs(server.port, callers.harness, "POST", "/v1/checkpoint/get", { project_path: world.own, id: saved.id });
  expect(found.summary).toBe("Still here");
}
