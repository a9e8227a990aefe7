import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Cairn } from "../../src/index.ts";
import type { Era } from "../mcp/connections.ts";
import { newIdempotencyKey, type TeamClient } from "./team-client.ts";

/** Clients of a team that work until they are stopped. Each keeps what was acknowledged, and `check` compares it with the database. */
export interface Workload {
  stop(): Promise<void>;
  /** Calls that were acknowledged so far. */
  acknowledged(): number;
  /** Rejects as soon as a client was refused. */
  readonly failed: Promise<never>;
  check(cairn: Cairn): Promise<void>;
}

interface Party {
  /** One round of calls, all of which are acknowledged when it resolves. */
  round(n: number): Promise<void>;
  end?(): Promise<void>;
  check(cairn: Cairn): Promise<void>;
}

const PROJECT = "/srv/team";
/** A letter for each digit. None of them is part of an ending that keyword search removes. */
const LETTERS = "bcdfghjkmq";
/** A word that no other record has. */
const wordOf = (who: string, n: number) => who + [...String(n)].map((digit) => LETTERS[Number(digit)]).join("");

export async function startWorkload(client: TeamClient): Promise<Workload> {
  const parties = [
    httpSaver(client, "alpha"),
    httpSaver(client, "bravo"),
    await mcpSaver(client, "2025-11-25", "charlie"),
    await mcpSaver(client, "2026-07-28", "delta"),
    feedback(client),
    indexer(client, "/srv/indexed"),
    indexer(client, "named"),
    runner(client),
  ];
  let stopping = false;
  let rounds = 0;
  const works = parties.map(async (party) => {
    for (let n = 0; !stopping; n++) {
      await party.round(n);
      rounds++;
    }
    await party.end?.();
  });
  const failed = Promise.all(works).then(() => new Promise<never>(() => {}));
  failed.catch(() => {});
  return {
    failed,
    acknowledged: () => rounds,
    async stop() {
      stopping = true;
      await Promise.all(works);
    },
    async check(cairn) {
      for (const party of parties) await party.check(cairn);
    },
  };
}

/** Returns summaries by id of all checkpoints whose summary begins with this name. */
async function storedBy(cairn: Cairn, name: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let offset = 0; ; offset += 100) {
    const { checkpoints } = await cairn.checkpoints.list({ projectPath: PROJECT, limit: 100, offset });
    for (const { id, summary } of checkpoints) if (summary.startsWith(`${name} `)) found.set(id, summary);
    if (checkpoints.length < 100) return found;
  }
}

function httpSaver(client: TeamClient, name: string): Party {
  const saved = new Map<string, string>();
  return {
    async round(n) {
      const word = wordOf(name, n);
      const summary = `${name} stored ${word}`;
      const body = { project_path: PROJECT, summary, idempotency_key: newIdempotencyKey() };
      const { id } = await client.post("/v1/checkpoint/save", body);
      saved.set(id as string, summary);
      // Another node answers, and it must know the record.
      const { results } = await client.post("/v1/checkpoint/search", { project_path: PROJECT, query: word, top_k: 1 });
      expect((results as { checkpoint: { id: string } }[])[0]?.checkpoint.id).toBe(id);
    },
    check: async (cairn) => expect(await storedBy(cairn, name)).toEqual(saved),
  };
}

async function mcpSaver(client: TeamClient, era: Era, name: string): Promise<Party> {
  const connection = await client.mcp(era);
  const saved = new Map<string, string>();
  return {
    async round(n) {
      const word = wordOf(name, n);
      const summary = `${name} stored ${word}`;
      const { id } = await connection.call("checkpoint_save", { project_path: PROJECT, summary, idempotency_key: newIdempotencyKey() });
      saved.set(id as string, summary);
      const answer = await connection.call("checkpoint_search", { project_path: PROJECT, query: word, top_k: 1, detail: "full" });
      expect((answer.results as { checkpoint: { id: string } }[])[0]?.checkpoint.id).toBe(id);
    },
    end: () => connection.close(),
    check: async (cairn) => expect(await storedBy(cairn, name)).toEqual(saved),
  };
}

/** Reports uses of one knowledge record; each counts once. */
function feedback(client: TeamClient): Party {
  let id: string | undefined;
  let uses = 0;
  return {
    async round() {
      const record = { project_path: PROJECT, category: "keys", question: "How are keys rotated?", answer: "Create, distribute, revoke." };
      id ??= (await client.post("/v1/knowledge/save", { ...record, idempotency_key: newIdempotencyKey() })).id as string;
      await client.post("/v1/knowledge/feedback", { project_path: PROJECT, id, success: true, idempotency_key: newIdempotencyKey() });
      uses++;
    },
    async check(cairn) {
      const { records } = await cairn.knowledge.list({ projectPath: PROJECT });
      expect(records.map((record) => ({ id: record.id, uses: record.uses }))).toEqual([{ id, uses }]);
    },
  };
}

/** Sends new versions of the same files. The index holds the last one. */
function indexer(client: TeamClient, projectPath: string): Party {
  const paths = ["src/one.ts", "src/two.ts"];
  const contentOf = (path: string, version: number) =>
    `export function ${path.slice(4, 7)}V${version}() {\n  return ${JSON.stringify(projectPath)};\n}\n`;
  let version = -1;
  return {
    async round(n) {
      const files = paths.map((path) => ({ path, content: contentOf(path, n) }));
      const { job_id: id } = await client.post("/index", { project_path: projectPath, files });
      version = n;
      for (let status: unknown; status !== "completed"; ) {
        ({ status } = await client.get(`/index/jobs/${id}?wait_ms=5000`));
        expect(["pending", "running", "completed"]).toContain(status);
      }
    },
    async check(cairn) {
      const wanted = paths.map((path) => [path, createHash("sha256").update(contentOf(path, version)).digest("hex")]);
      expect(await cairn.code.hashes({ projectPath, paths })).toEqual(Object.fromEntries(wanted));
      expect((await cairn.code.stats({ projectPath })).files).toBe(paths.length);
      expect((await cairn.code.compact({ projectPath })).orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
    },
  };
}

/** Queues runs for the workers and waits for each. */
function runner(client: TeamClient): Party {
  const ids: string[] = [];
  return {
    async round(n) {
      const id = `parcel-${n}`;
      await client.post("/v1/run/enqueue", { graph: "parcel", input_json: '{"trail":[]}', run_id: id });
      ids.push(id);
      for (let status: unknown; status !== "completed"; await sleep(50)) {
        const answer = await client.post("/v1/run/get", { run_id: id });
        status = (answer.run as { status?: unknown } | undefined)?.status ?? answer.status;
        expect(["queued", "running", "completed"]).toContain(status);
      }
    },
    async check({ runs }) {
      const all = await runs.store.listRuns({ graph: "parcel", limit: 1_000 });
      expect(all.map(({ runId, status }) => ({ runId, status })).sort((a, b) => (a.runId < b.runId ? -1 : 1))).toEqual(
        [...ids].sort().map((runId) => ({ runId, status: "completed" })),
      );
      for (const id of ids) {
        const steps = (await runs.store.history(id)).filter(({ kind }) => kind === "node");
        expect(steps.map(({ nodeId }) => nodeId).sort()).toEqual(["label", "pack", "send"]);
      }
    },
  };
}
