import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pathResolver, questionText, readLongQuery } from "../../src/code/long-question.ts";
import { type Cairn, open } from "../../src/index.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/home/me/app";
let cairn: Cairn;

beforeAll(async () => {
  cairn = await open({ storage: "memory", embedder: [testEmbedder()] });
  const files = ["alpha", "beta", "gamma", "delta", "omega"].map((name) => ({
    path: `src/${name}/worker.ts`,
    content: `export function ${name}Start(job: string) {\n  const state = job.length;\n  return state;\n}\n\nexport function ${name}Stop(job: string) {\n  throw new Error("cannot stop the ${name} worker twice");\n}\n`,
  }));
  await cairn.code.indexBatch({ projectPath, files });
});
afterAll(() => cairn.close());

const first = async (query: string) => (await cairn.code.search({ projectPath, query })).hits[0]!;

describe("a long question to code search", () => {
  it("finds the file of its innermost stack frame", async () => {
    const trace =
      "The worker crashes\n\nIt happens at night.\n    at /build/src/delta/worker.ts:7:9\n    at /build/src/beta/worker.ts:2:9\n";
    expect(await first(trace)).toMatchObject({ path: "src/delta/worker.ts" });
  });

  it("finds a file by its path, a name or a message in the text", async () => {
    const prose = "Something is wrong with the job, and nobody knows why. ".repeat(40);
    expect((await first(`Job is lost\n${prose}\nSee src/gamma/worker.ts for it.`)).path).toBe("src/gamma/worker.ts");
    expect(await first(`Job is lost\n${prose}\nPerhaps \`omegaStop\` is the reason.`)).toMatchObject({
      path: "src/omega/worker.ts",
      found: { definition: true },
    });
    expect((await first(`Job is lost\n${prose}\nError: cannot stop the beta worker twice`)).path).toBe("src/beta/worker.ts");
  });

  it("may have 32,000 characters", async () => {
    const padding = "x".repeat(40);
    const text = `Crash in worker\n    at alphaStop (src/alpha/worker.ts:7:3)\n${`${padding}\n`.repeat(1_000)}`.slice(
      0,
      LIMITS.longQuestionChars,
    );
    expect((await first(text)).path).toBe("src/alpha/worker.ts");
  });

  it("is embedded and matched by its title, messages and names first", () => {
    const text = questionText(`Queue stops\n${"Some sentence about it here. ".repeat(100)}\nError: no job left\nuse JobQueue`);
    expect(text.startsWith("Queue stops\nError: no job left\nJobQueue\nSome sentence")).toBe(true);
    expect(text.length).toBeLessThanOrEqual(1_000);
  });

  it("is ranked by the words of its title and the names of the whole text", () => {
    const query = readLongQuery("Queue stops\nwhen JobQueue.run fails\nError: no job left here");
    expect(query.words).toEqual(["queue", "stops"]);
    expect(query.names).toContain("run");
    expect(query.owners.get("run")).toBe("JobQueue");
    expect(query.wordSequence).toEqual(["error", "no", "job", "left", "here"]);
  });
});

describe("paths of another machine", () => {
  const resolve = pathResolver(["src/a/index.ts", "src/b/index.ts", "src/main.ts", "lib/main.ts"]);

  it.each([
    ["/home/x/src/b/index.ts", ["src/b/index.ts"]],
    ["b/index.ts", ["src/b/index.ts"]],
    ["index.ts", []],
    ["/x/lib/main.ts", ["lib/main.ts"]],
    ["node_modules/y/other.ts", []],
  ])("resolve %s by the names at its end", (written, expected) => {
    expect(resolve(written)).toEqual(expected);
  });
});
