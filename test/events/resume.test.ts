import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeCursor, encodeCursor } from "../../src/events/cursor.ts";
import { events } from "../../src/events/service.ts";
import type { IndexReport } from "../../src/model/index-report.ts";
import { memoryRunStore } from "../../src/stores/memory/runs.ts";
import { memoryStorage } from "../../src/stores/memory/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";

const PROJECTS = ["/a", "/b", "/c"];
const never = new AbortController().signal;

type Step = { readonly do: "save"; readonly project: number } | { readonly do: "read" } | { readonly do: "cut"; readonly keep: number };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("save" as const), project: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.constant({ do: "read" as const }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cut" as const), keep: fc.nat(3) }) },
);

describe("a stream that is resumed by the id of its last message", () => {
  it("loses nothing and repeats nothing, wherever it is cut off", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.boolean(), async (steps, isAll) => {
        const storage = memoryStorage();
        const service = events({ storage, runs: memoryRunStore(), now: () => new Date().toISOString(), periodMs: 1 });
        for (const project of PROJECTS.slice(0, 2)) await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project));
        await new Promise((resolve) => setTimeout(resolve, 2)); // a stream of its own starts by the clock
        const projects = isAll ? "all" : PROJECTS;
        const saved: string[] = [];
        const received: string[] = [];
        let lastEventId: string | undefined;
        let stream = await service.follow({ projects });
        const read = async (waitMs: number, keep = 1_000) => {
          for (const message of (await stream.next(waitMs, never)).slice(0, keep)) {
            expect(message.type).toBe("change");
            lastEventId = message.id;
            if (message.type === "change" && message.event.kind === "checkpoint") received.push(message.event.id);
          }
        };
        for (const one of steps) {
          if (one.do === "save") {
            const project = PROJECTS[one.project]!;
            const checkpoint = sampleCheckpoint(project);
            await (await storage.create(project)).checkpoints.put(checkpoint);
            saved.push(checkpoint.id);
          } else if (one.do === "read") await read(5);
          else if (lastEventId !== undefined) {
            await read(5, one.keep); // the connection breaks inside a page: the rest must arrive again
            stream.close();
            stream = await service.follow({ projects, lastEventId });
          }
        }
        for (let attempt = 0; received.length < saved.length && attempt < 400; attempt++) await read(10);
        await read(5);
        stream.close();
        service.close();
        expect(received.toSorted()).toEqual(saved.toSorted());
      }),
      { numRuns: 40 },
    );
  });
});

describe("the id of a message", () => {
  it("names the positions of the logs that sent something", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4e12 }),
        fc.uniqueArray(fc.tuple(fc.stringMatching(/^[0-9a-f]{16}$/), fc.stringMatching(/^[0-9]{1,18}(\.[0-9]{1,15})?$/)), {
          selector: ([name]) => name,
          maxLength: 20,
        }),
        (ms, entries) => {
          const cursor = { startedAt: new Date(ms).toISOString(), positions: new Map(entries) };
          expect(decodeCursor(encodeCursor(cursor))).toEqual(cursor);
        },
      ),
    );
  });

  it("is refused when it is anything else", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const cursor = decodeCursor(text);
        if (cursor) expect(encodeCursor(cursor)).toBe(text.replace(/^0+(?=[^,])/, ""));
      }),
    );
    for (const id of ["", "!", "a,b", "a,b:1,b:1", "zzzzzzzzzzzz"]) expect(decodeCursor(id)).toBeUndefined();
  });
});

describe("index jobs", () => {
  it("are reported when their status changes, and not at each report", async () => {
    const storage = memoryStorage();
    const { code } = await storage.create("/a");
    const service = events({ storage, runs: memoryRunStore(), now: () => new Date().toISOString(), periodMs: 1 });
    const stream = await service.follow({ projects: ["/a"] });
    const report = (status: IndexReport["status"], filesProcessed: number) => {
      const at = new Date().toISOString();
      const lists = { counts: {}, skipped: {}, skippedFiles: [], failedFiles: [] };
      return code.report({ jobId: "job", status, phase: "", startedAt: at, updatedAt: at, filesProcessed, filesTotal: 9, ...lists });
    };
    const statuses: (string | undefined)[] = [];
    const readUntil = async (isDone: () => boolean) => {
      while (!isDone())
        for (const message of await stream.next(20, never))
          if (message.type === "change" && message.event.action === "job") statuses.push(message.event.status);
    };
    await report("running", 1);
    await readUntil(() => statuses.length === 1);
    await report("running", 2);
    await report("running", 3);
    await report("completed", 9);
    await readUntil(() => statuses.includes("completed"));
    expect(statuses).toEqual(["running", "completed"]);
    stream.close();
    service.close();
  });
});
