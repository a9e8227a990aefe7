import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operations } from "../../src/operations/list.ts";
import { type Api, api } from "../http/api.ts";

const ALLOWED = "http://localhost:5173";
let server: Api;
const mounted: string[] = [];

beforeAll(async () => {
  const mcp = async (request: Request) => {
    mounted.push(request.method);
    return Response.json({ ok: true });
  };
  server = await api({ allowedOrigins: [ALLOWED], mount: { "/mcp": mcp }, metrics: async () => "figures", rateLimit: false });
});
afterAll(() => server?.cairn.close());

const get = (path: string, headers: Record<string, string>, method = "GET") => server.call(method, path, undefined, { headers });
const reads = operations.flatMap(({ http }) => (http?.method === "GET" && !http.path.includes("{") ? [http.path] : []));

describe.each(["cross-site", "same-site", "something-new", "same-origin, cross-site"])("a page of another site (%s)", (site) => {
  const headers = { "sec-fetch-site": site };

  it("cannot make the browser run a read by an image or a script", async () => {
    expect(reads.length).toBeGreaterThan(3);
    for (const path of [...reads, "/v1/stats?limit=1", "/metrics", "/health", "/health/ready", "/nothing"]) {
      const { status, body } = await get(path, headers);
      expect([path, status, body.error?.code]).toEqual([path, 403, "forbidden"]);
    }
  });

  it("cannot make the browser open an MCP stream", async () => {
    mounted.length = 0;
    expect((await get("/mcp", headers)).status).toBe(403);
    expect((await get("/mcp", headers, "DELETE")).status).toBe(403);
    expect(mounted).toEqual([]);
  });

  it("cannot send a form, with or without an Origin", async () => {
    for (const origin of [{}, { origin: "null" }, { origin: "https://evil.example" }, { origin: `${ALLOWED}.evil.example` }]) {
      const options = { headers: { ...headers, ...origin, "content-type": "application/json" } };
      expect((await server.call("POST", "/v1/checkpoint/list", { project_path: "/p" }, options)).status).toBe(403);
    }
  });

  it("may link to the public documents, and to nothing by another method", async () => {
    for (const path of ["/", "/docs", "/openapi.json"]) {
      expect((await get(path, headers)).status).toBe(200);
      expect((await get(path, headers, "POST")).status).toBe(403);
    }
  });

  it("may call when its origin is allowed", async () => {
    expect((await get("/v1/stats", { ...headers, origin: ALLOWED })).status).toBe(200);
    expect((await get("/v1/stats", { ...headers, origin: ALLOWED }, "OPTIONS")).status).toBe(204);
  });
});

it.each([
  ["a program", {}],
  ["an address typed into the browser", { "sec-fetch-site": "none" }],
  ["the server's own page", { "sec-fetch-site": "same-origin" }],
])("lets %s call", async (_, headers) => {
  for (const path of ["/v1/stats", "/health", "/metrics", "/mcp"]) expect([path, (await get(path, headers)).status]).toEqual([path, 200]);
});
