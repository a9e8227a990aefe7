import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { withRetry } from "../../src/client/jobs/index-target.ts";
import { type ApiClient, apiClient } from "../../src/client/remote/api-client.ts";
import { remoteTarget } from "../../src/client/remote/remote-target.ts";
import { operations } from "../../src/operations/list.ts";

describe("the API client", () => {
  const send = operations.find(({ name }) => name === "code_send")!;

  it("sends at most ten requests per second, obeys Retry-After, and repeats files that a restarted server lost", async () => {
    const seen: { method: string; url: string }[] = [];
    /** When the calls were made; a busy machine gives them to the server some time later. */
    const madeAt: number[] = [];
    let refusals = 2;
    let lost = 1;
    const server = createServer((request, response) => {
      seen.push({ method: request.method!, url: request.url! });
      request.resume();
      request.on("end", () => {
        const answer = (status: number, body: unknown, headers = {}) =>
          response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
        const job = { job_id: "j", project_path: "p", kind: "files", accepted_at: "2026-01-01T00:00:00.000Z" };
        if (request.method === "POST" && refusals-- > 0)
          return answer(503, { error: { code: "unavailable", message: "The queue is full." } }, { "retry-after": "1" });
        if (request.method === "POST") return answer(202, { ...job, status: "pending" });
        if (lost-- > 0) return answer(404, { error: { code: "not_found", message: "There is no job." } });
        const files = [{ path: "a.py", status: "indexed", chunks: 1 }];
        return answer(200, {
          ...job,
          status: "completed",
          result: { files, embedded_texts: 1, removed: 0, removed_paths: [], renamed: 0 },
        });
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const made = apiClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, credential: async () => "k" });
      const client: ApiClient = {
        ...made,
        call(...args) {
          madeAt.push(performance.now());
          return made.call(...args);
        },
      };
      const target = withRetry(remoteTarget(client, "p"), { firstPauseMs: 1 });
      const outcome = await target.send([{ path: "a.py", content: "a" }], new AbortController().signal);
      expect(outcome).toMatchObject([{ path: "a.py", status: "indexed" }]);
      expect(seen.map(({ method, url }) => `${method} ${url.split("?")[0]}`)).toEqual([
        "POST /index",
        "POST /index",
        "POST /index",
        "GET /index/jobs/j",
        "POST /index",
        "GET /index/jobs/j",
      ]);
      // What was asked for, less what timers may be early by.
      expect(madeAt[1]! - madeAt[0]!).toBeGreaterThan(990);
      expect(madeAt[3]! - madeAt[2]!).toBeGreaterThan(95);
    } finally {
      server.close();
    }
  });

  it.each([
    ["a page of a proxy", 502, "<html>Bad gateway</html>", "unavailable"],
    ["too many requests without a word", 429, "", "rate_limited"],
    ["something that is no Cairn", 200, "hello", "unavailable"],
    ["an error of Cairn's", 403, JSON.stringify({ error: { code: "forbidden", message: "Not for this project." } }), "forbidden"],
    ["an error with a code that is none", 500, JSON.stringify({ error: { code: "weird", message: "?" } }), "unavailable"],
  ])("understands %s", async (_, status, body, code) => {
    const server = createServer((_request, response) => response.writeHead(status).end(body));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const client = apiClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
      await expect(client.call(send, { project_path: "p", files: [] })).rejects.toMatchObject({ code });
    } finally {
      server.close();
    }
  });
});
