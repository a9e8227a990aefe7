import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Api, api } from "./api.ts";

const built = resolve(import.meta.dirname, "../../dist/console");
let server: Api;
beforeAll(async () => {
  server = await api();
});
afterAll(() => server?.cairn.close());

const get = (path: string, headers: Record<string, string> = {}) => server.handle(new Request(`http://127.0.0.1${path}`, { headers }));
const scripts = () => readdirSync(join(built, "assets")).filter((name) => name.endsWith(".js"));

describe("the console's files", () => {
  it("need no credential, while every call does", async () => {
    expect((await get("/")).status).toBe(200);
    expect((await get(`/assets/${scripts()[0]}`)).status).toBe(200);
    expect((await get("/v1/stats")).status).toBe(401);
    expect((await get("/session")).status).toBe(401);
  });

  it("have a policy that allows the page's own script and style by their hashes, and no other code", async () => {
    const { headers } = await get("/");
    const policy = headers.get("content-security-policy")!;
    expect(policy).toMatch(/default-src 'none'; script-src 'sha256-[^']+' 'strict-dynamic'; style-src 'sha256-[^']+';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|http:|https:|\*/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
  });

  it("revalidate the page by its ETag and keep the files with a hash for good", async () => {
    const page = await get("/");
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const again = await get("/", { "if-none-match": page.headers.get("etag")! });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect(again.headers.get("content-security-policy")).toBe(page.headers.get("content-security-policy"));
    expect((await get("/", { "if-none-match": '"other"' })).status).toBe(200);
    expect((await get(`/assets/${scripts()[0]}`)).headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  });

  it.each([
    ["br, gzip", "br"],
    ["gzip, deflate", "gzip"],
    ["identity", null],
  ])("are sent as built for Accept-Encoding: %s", async (accepted, encoding) => {
    for (const path of ["/", `/assets/${scripts()[0]}`]) {
      const { headers } = await get(path, { "accept-encoding": accepted });
      expect([headers.get("content-encoding"), headers.get("vary")]).toEqual([encoding, "accept-encoding"]);
    }
  });

  it("answer 404 for a name that is not a file of the build", async () => {
    for (const name of ["nothing.js", "..%2f..%2fpackage.json", "main.js.map"])
      expect([name, (await get(`/assets/${name}`)).status]).toEqual([name, 404]);
  });

  it("are at most 200 kB in all when compressed by gzip, and have no source map", () => {
    const files = readdirSync(built, { recursive: true }).map(String);
    const compressed = files.filter((name) => name.endsWith(".gz")).map((name) => statSync(join(built, name)).size);
    expect(compressed.length).toBeGreaterThan(5);
    expect(compressed.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(204_800);
    expect(files.filter((name) => name.endsWith(".map"))).toEqual([]);
  });

  it("name no other host", () => {
    const texts = [join(built, "index.html"), ...scripts().map((name) => join(built, "assets", name))].map((file) =>
      readFileSync(file, "utf8"),
    );
    const hosts = texts.flatMap((text) => text.match(/https?:\/\/[\w.-]+/g) ?? []);
    expect([...new Set(hosts)].filter((url) => url !== "http://www.w3.org")).toEqual([]); // the name of SVG, which nobody fetches
  });
});
