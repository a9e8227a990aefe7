import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CairnError, open } from "../../src/index.ts";
import { builtCommand } from "../cli/stage.ts";
import { ownCluster, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";
import { localAuthorization } from "../support/local-token.ts";
import { killProcess } from "../support/processes.ts";
import { counts } from "./processes.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
/** At least two chunks, so that a duplicated or partial file is detected. */
const content = (project: string, name: string, version: number) =>
  `export function ${name}V${version}() {\n  return "${project} ${version}";\n}\n\nexport class ${name.toUpperCase()} {\n  version = ${version};\n}\n`;

interface Server {
  readonly url: string;
  readonly child: ChildProcess;
}

describe("two servers on one PostgreSQL", () => {
  let database: TestDatabase;
  let folder: string;
  let main: string;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    main = builtCommand();
    database = await testDatabase();
    folder = mkdtempSync(join(tmpdir(), "cairn-queue-"));
  });
  afterAll(async () => {
    await Promise.all(children.map(killProcess));
    await database.drop();
    rmSync(folder, { recursive: true });
  });

  async function serve(): Promise<Server> {
    const child = spawn(main, ["serve", "--port", "0", "--json"], {
      cwd: folder,
      env: {
        PATH: process.env.PATH!,
        HOME: folder,
        CAIRN_STORAGE: database.url,
        CAIRN_EMBEDDER_KIND: "static",
        CAIRN_LOG_LEVEL: "silent",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    const [line] = await once(createInterface(child.stdout!), "line");
    return { url: JSON.parse(line).url, child };
  }

  const call = async (server: Server, method: string, path: string, body?: unknown) => {
    const response = await fetch(server.url + path, {
      method,
      headers: { ...localAuthorization(join(folder, ".cairn")), ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    return { status: response.status, body: (await response.json()) as Record<string, never> };
  };

  it("index every accepted batch once and in order while servers are killed", {
    timeout: 1_800_000,
  }, async () => {
    const projects = ["/srv/one", "two", "/srv/three"];
    const names = Array.from({ length: 6 }, (_, index) => `f${index}`);
    const servers = [await serve(), await serve()];
    const kills = counts({ short: 4, soak: 40 });
    const accepted: string[] = [];
    let sending = true;
    let refusals = 0;

    /** Sends a batch to one server, or to the other if that one dies, until one acknowledges it. */
    async function deliver(body: object): Promise<void> {
      for (;;) {
        const server = servers[Math.random() < 0.5 ? 0 : 1]!;
        try {
          const answer = await call(server, "POST", "/index", body);
          if (answer.status === 202) return void accepted.push(answer.body.job_id!);
          expect(answer.status).toBe(503);
        } catch (error) {
          if ((error as Error).name === "AssertionError") throw error;
          refusals++; // the server is dead or died while answering
        }
        await sleep(20);
      }
    }

    const waiting = async (project: string): Promise<number> => {
      const path = `/status?project_path=${encodeURIComponent(project)}`;
      const answers = await Promise.allSettled(servers.map((server) => call(server, "GET", path)));
      refusals += answers.filter(({ status }) => status === "rejected").length;
      return Math.max(0, ...answers.map((answer) => (answer.status === "fulfilled" ? Number(answer.value.body.pending) : 0)));
    };

    const versions = new Map(projects.map((project) => [project, 0]));
    const senders = projects.map(async (project) => {
      while (sending) {
        const version = versions.get(project)! + 1;
        await deliver({
          project_path: project,
          files: names.map((name) => ({ path: `src/${name}.ts`, content: content(project, name, version) })),
        });
        versions.set(project, version);
        // Stays ahead of the indexer, so that work is queued when a server dies, by a small bounded amount.
        while (sending && (await waiting(project)) > 4) await sleep(50);
      }
    });

    for (let kill = 0; kill < kills; kill++) {
      await sleep(300 + Math.random() * 700);
      const victim = kill % 2;
      servers[victim]!.child.kill("SIGKILL");
      await once(servers[victim]!.child, "exit");
      await sleep(Math.random() * 500); // the other one continues alone
      servers[victim] = await serve();
    }
    sending = false;
    await Promise.all(senders);
    expect(accepted.length).toBeGreaterThan(kills);
    expect(refusals).toBeGreaterThan(0);

    for (const id of accepted) {
      let job = await call(servers[0]!, "GET", `/index/jobs/${id}?wait_ms=20000`);
      while (job.body.status === "pending" || job.body.status === "running")
        job = await call(servers[0]!, "GET", `/index/jobs/${id}?wait_ms=20000`);
      expect(`${id} ${job.body.status}`).toBe(`${id} completed`);
    }
    for (const server of servers) server.child.kill("SIGTERM");
    await Promise.all(servers.map(({ child }) => child.exitCode ?? once(child, "exit")));

    const cairn = await open({ storage: database.url, dataDir: folder, embedder: { kind: "static" } });
    for (const projectPath of projects) {
      const version = versions.get(projectPath)!;
      const paths = names.map((name) => `src/${name}.ts`);
      const wanted = Object.fromEntries(names.map((name) => [`src/${name}.ts`, sha256(content(projectPath, name, version))]));
      expect(await cairn.code.hashes({ projectPath, paths })).toEqual(wanted);
      const { files, chunks, embeddings } = await cairn.code.stats({ projectPath });
      expect({ files, vectors: embeddings[0]!.vectors }).toEqual({ files: names.length, vectors: chunks });
      for (const name of names)
        expect((await cairn.code.context({ projectPath, path: `src/${name}.ts` }))[0]!.text).toBe(
          content(projectPath, name, version).trimEnd(),
        );
      expect((await cairn.code.compact({ projectPath })).orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
    }
    await cairn.close();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    expect((await client.query("SELECT count(*)::int AS left FROM cairn_queue.index_work")).rows).toEqual([{ left: 0 }]);
    await client.end();
  });
});

describe("the queue, when PostgreSQL stops", () => {
  it("keeps accepted batches through a restart and a kill of PostgreSQL", {
    timeout: 1_800_000,
  }, async () => {
    const cluster = await ownCluster();
    const folder = mkdtempSync(join(tmpdir(), "cairn-queue-"));
    try {
      const cairn = await open({ storage: cluster.url, dataDir: folder, embedder: [testEmbedder()] });
      const projects = ["/srv/one", "two"];
      const accepted: string[] = [];
      const versions = new Map(projects.map((project) => [project, 0]));
      let sending = true;
      const senders = projects.map(async (projectPath) => {
        while (sending) {
          const version = versions.get(projectPath)! + 1;
          try {
            const files = [{ path: "src/a.ts", content: content(projectPath, "a", version) }];
            accepted.push((await cairn.indexing.send({ projectPath, files })).id);
            versions.set(projectPath, version);
          } catch (error) {
            expect(error).toBeInstanceOf(CairnError);
            expect((error as CairnError).code).toBe("unavailable");
          }
          await sleep(30);
        }
      });
      const more = async (batches: number) => {
        const target = accepted.length + batches;
        while (accepted.length < target) await Promise.race([sleep(20), ...senders]);
      };
      for (let round = 0; round < counts({ short: 1, soak: 8 }); round++)
        for (const fault of ["stop", "kill"] as const) {
          await more(10);
          await cluster[fault]();
          await sleep(500);
          await cluster.start();
          await more(5);
        }
      sending = false;
      await Promise.all(senders);
      for (const id of accepted) {
        let job = await cairn.indexing.job(id, { waitMs: 20_000 });
        while (job.status === "pending" || job.status === "running") job = await cairn.indexing.job(id, { waitMs: 20_000 });
        expect(`${id} ${job.status}`).toBe(`${id} completed`);
      }
      for (const projectPath of projects) {
        const wanted = sha256(content(projectPath, "a", versions.get(projectPath)!));
        expect(await cairn.code.hashes({ projectPath, paths: ["src/a.ts"] })).toEqual({ "src/a.ts": wanted });
        expect((await cairn.code.compact({ projectPath })).orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
      }
      expect(await cairn.indexing.depth()).toMatchObject({ pending: 0, running: 0 });
      await cairn.close();
    } finally {
      await cluster.destroy();
      rmSync(folder, { recursive: true });
    }
  });
});
