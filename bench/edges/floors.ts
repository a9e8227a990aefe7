import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { projectSchema } from "../../src/stores/sqlite/projects/project-schema.ts";
import { type Bench, root } from "../frame.ts";

const emptyServer = join(root, "bench", "edges", "empty-server.mjs");

/** Returns a call that the MCP server of the same SDK answers without any work, over stdio. */
export async function emptyMcp(bench: Bench): Promise<() => Promise<void>> {
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [emptyServer, "mcp"], stderr: "ignore" }));
  bench.defer(() => client.close());
  const id = randomUUID();
  return async () => void (await client.callTool({ name: "empty", arguments: { id } }));
}

/** Returns a request that a server of the same packages answers without any work, over one keep-alive connection. */
export async function emptyHttp(bench: Bench): Promise<() => Promise<void>> {
  const server = spawn(process.execPath, [emptyServer, "http"], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(server, "close");
  bench.defer(async () => {
    server.kill("SIGTERM");
    await ended;
  });
  const [line] = await once(createInterface(server.stdout), "line");
  const { url } = JSON.parse(line);
  const body = JSON.stringify({ project_path: "/bench", id: randomUUID() });
  const headers = { authorization: `Bearer ${randomUUID()}`, "content-type": "application/json" };
  return async () => void (await (await fetch(`${url}/empty`, { method: "POST", headers, body })).json());
}

/** Returns a transaction that writes the rows of a save with the same durability, and does nothing else. The triggers of the schema write the events. */
export async function bareSave(bench: Bench): Promise<() => Promise<void>> {
  const { DatabaseSync } = await loadEngine();
  const database = new DatabaseSync(join(bench.scratch(), "bare.db"));
  bench.defer(() => database.close());
  database.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000");
  database.exec(`PRAGMA secure_delete = ON; PRAGMA foreign_keys = ON; ${projectSchema.sql}`);
  const [begin, commit] = [database.prepare("BEGIN IMMEDIATE"), database.prepare("COMMIT")];
  const record = database.prepare(
    `INSERT INTO checkpoints (id, created_at, created_order, summary, description, context, anchors, superseded_by, token_count, pieces, updated_at, updated_order, revision, checksum)
     VALUES (?1, ?2, ?2, ?3, '', '{}', '[]', '', 12, 1, ?2, ?2, 1, ?4)`,
  );
  const tag = database.prepare("INSERT INTO checkpoint_tags (checkpoint_key, position, tag, folded) VALUES (?, 0, 'bench', 'bench')");
  const terms = database.prepare("INSERT INTO checkpoint_fts (rowid, terms) VALUES (?, ?)");
  const checksum = "0".repeat(64);
  return async () => {
    const id = randomUUID();
    begin.run();
    const { lastInsertRowid } = record.run(id, new Date().toISOString(), `Parser done, lexer next ${id}`, checksum);
    tag.run(lastInsertRowid);
    terms.run(lastInsertRowid, `parser done lexer next ${id.replaceAll("-", " ")} bench`);
    commit.run();
  };
}
