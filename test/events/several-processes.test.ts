import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventStream } from "../../src/events/service.ts";
import { type Cairn, open } from "../../src/index.ts";

const P = "/home/me/project";
const never = new AbortController().signal;
let dataDir: string;
let cairn: Cairn;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-"));
  cairn = await open({ dataDir, embedder: { kind: "none" } });
});
afterEach(async () => {
  await cairn.close();
  rmSync(dataDir, { recursive: true });
});

/** Starts a process that saves, and returns the ids that it acknowledged. */
function writer(count: number) {
  const child = spawn(process.execPath, [join(import.meta.dirname, "save-many.mjs"), dataDir, P, String(count)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const acknowledged: string[] = [];
  let onLine = () => {};
  createInterface({ input: child.stdout }).on("line", (line) => {
    acknowledged.push(line);
    onLine();
  });
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()));
  return {
    acknowledged,
    ended,
    async killAfter(lines: number) {
      await new Promise<void>((resolve) => {
        onLine = () => acknowledged.length >= lines && resolve();
      });
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function idsOf(stream: EventStream, enough: (ids: readonly string[]) => boolean): Promise<string[]> {
  const ids: string[] = [];
  while (!enough(ids)) for (const message of await stream.next(10_000, never)) if (message.type === "change") ids.push(message.event.id);
  return ids;
}

describe("the events of a SQLite project that several processes use", () => {
  it("reports each save of two other processes exactly once", async () => {
    await cairn.checkpoints.save({ projectPath: P, summary: "before" });
    const stream = await cairn.events.follow({ projects: [P] });
    const writers = [writer(40), writer(40)];
    const ids = await idsOf(stream, (found) => found.length >= 80);
    await Promise.all(writers.map(({ ended }) => ended));
    const late = await stream.next(1_200, never);
    stream.close();
    expect(ids.sort()).toEqual(writers.flatMap(({ acknowledged }) => acknowledged).sort());
    expect(late).toEqual([]);
  });

  it("reports what a killed process had acknowledged, and nothing that is not stored", async () => {
    const stream = await cairn.events.follow({ projects: [P] });
    const killed = writer(100_000);
    await killed.killAfter(30);
    const { total } = await cairn.checkpoints.list({ projectPath: P, limit: 1 });
    const ids = await idsOf(stream, (found) => found.length >= total);
    stream.close();
    expect(new Set(ids).size).toBe(total);
    for (const id of killed.acknowledged) expect(ids).toContain(id);
    for (const id of ids) await cairn.checkpoints.get({ projectPath: P, id });
  });
});
