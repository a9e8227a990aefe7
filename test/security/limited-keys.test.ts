import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Api, api, REMOTE } from "../http/api.ts";

const MINE = "/home/me/mine";
const THEIRS = "/home/them/secret-project";
let server: Api;
let limited: string;
let everything: string;

beforeAll(async () => {
  server = await api();
  const { cairn } = server;
  for (const projectPath of [MINE, THEIRS]) await cairn.checkpoints.save({ projectPath, summary: "one" });
  for (let count = 0; count < 3; count++) await cairn.checkpoints.save({ projectPath: THEIRS, summary: `more ${count}` });
  await cairn.knowledge.save({ scope: "shared", kind: "faq", question: "q", answer: "a" });
  limited = (await cairn.keys.create({ label: "limited", access: "admin", projects: [MINE] })).key;
  everything = (await cairn.keys.create({ label: "all", access: "admin", projects: "all" })).key;
});
afterAll(() => server?.cairn.close());

const as = (key: string, method: string, path: string, body?: unknown) =>
  server.call(method, path, body, { headers: { authorization: `Bearer ${key}` }, connection: REMOTE });

describe("a key for one project", () => {
  it("sees only that project's figures in stats", async () => {
    const { status, body } = await as(limited, "GET", "/v1/stats");
    expect(status).toBe(200);
    expect(body).toEqual({
      projects: [expect.objectContaining({ project_path: MINE, checkpoints: 1 })],
      total: 1,
      partial: false,
      degraded: [],
    });
    const all = (await as(everything, "GET", "/v1/stats")).body;
    expect([all.total, all.shared.knowledge, all.embedding.texts]).toEqual([2, 1, expect.any(Number)]);
  });

  it("cannot tell by stats whether another project exists", async () => {
    const ask = async (project: string) => (await as(limited, "GET", `/v1/stats?of_project=${encodeURIComponent(project)}`)).body;
    expect(await ask(THEIRS)).toEqual(await ask("/home/nobody/nothing"));
  });

  it("learns from /health that the server is ready, and nothing of paths or shared knowledge", async () => {
    const { body } = await as(limited, "GET", "/health");
    expect(Object.keys(body).sort()).toEqual(["live", "ready", "status", "uptime_seconds", "version"]);
    expect(Object.keys((await as(everything, "GET", "/health")).body)).toEqual(expect.arrayContaining(["checks", "knowledge"]));
  });

  it("gets the same refusal for a project that exists and for one that does not", async () => {
    for (const path of ["/v1/checkpoint/list", "/v1/database/check", "/v1/embeddings/list"]) {
      const [exists, missing] = await Promise.all(
        [THEIRS, "/home/nobody/nothing"].map(async (project_path) => {
          const { status, body } = await as(limited, "POST", path, { project_path });
          return [status, body.error?.message];
        }),
      );
      expect([path, exists]).toEqual([path, missing]);
      expect(exists![0]).toBe(403);
    }
  });

  it("finds no name of another project in any answer about several projects", async () => {
    const answers = [
      await as(limited, "GET", "/v1/stats"),
      await as(limited, "POST", "/v1/checkpoint/search_all", { query: "one" }),
      await as(limited, "GET", "/v1/key/list"),
      await as(limited, "GET", "/v1/doctor"),
      await as(limited, "GET", "/v1/backup/list"),
      await as(limited, "POST", "/v1/run/list", {}),
      await as(limited, "POST", "/v1/system/list", {}),
      await as(limited, "GET", "/status"),
      await as(limited, "GET", "/metrics"),
    ];
    for (const { body } of answers) expect(JSON.stringify(body)).not.toContain("secret-project");
  });
});

describe("a key whose project no call can name", () => {
  const create = (projects: unknown) => server.call("POST", "/v1/key/create", { label: "x", access: "read", projects });

  it.each([
    ["a relative path", "src/app", /absolute path/],
    ["a path with a dot", "./app", /absolute path/],
    ["the home folder's sign", "~/app", /absolute path/],
    ["a trailing slash", "/home/me/app/", /cleaned form: "\/home\/me\/app"/],
    ["a step up", "/home/me/../them", /cleaned form: "\/home\/them"/],
    ["a doubled slash", "/home//me", /cleaned form: "\/home\/me"/],
    ["a lone dot inside", "/home/./me", /cleaned form: "\/home\/me"/],
    ["a NUL", "/home/me\u0000", /NUL/],
    ["half a surrogate pair", "/home/\ud800", /surrogate/],
    ["a pattern", "*", /absolute path, or a name/],
    ["a pattern of paths", "/home/*/../*", /cleaned form/],
    ["nothing but a space", " ", /must not be blank/],
    ["a Windows path with a slash at its end", "C:\\work\\", /cleaned form/],
  ])("is refused: %s", async (_, project, problem) => {
    const { status, body } = await create([MINE, project]);
    expect([status, body.error.message]).toEqual([400, expect.stringMatching(problem)]);
    await expect(server.cairn.keys.create({ label: "x", access: "read", projects: [project] })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  it("is refused with an error that explains the valid form", async () => {
    const { body } = await create(["src/app"]);
    expect(body.error.message).toContain(
      'projects: "src/app" must be an absolute path. Write each project as an absolute path such as /home/me/app',
    );
    await expect(server.cairn.keys.create({ label: "x", access: "read", projects: [] })).rejects.toThrow(/at least one project/);
  });

  it("is created for paths, names and shared records", async () => {
    expect((await create(["/", "/home/me/app", "C:\\work\\app", "my-app", "shared"])).status).toBe(201);
  });
});
