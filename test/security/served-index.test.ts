import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type IndexJobs, indexJobs } from "../../src/client/jobs/index-jobs.ts";
import { embeddedTarget } from "../../src/client/jobs/index-target.ts";
import { launchHere } from "../../src/client/jobs/launch.ts";
import { runJob } from "../../src/client/jobs/run-job.ts";
import { servedCodeIndex } from "../../src/client/jobs/served-index.ts";
import { type Cairn, open } from "../../src/index.ts";
import { operations } from "../../src/operations/list.ts";
import { type Api, api, LOCAL } from "../http/api.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";
import { removeFolder } from "../support/processes.ts";

const ALLOWED = "http://localhost:5173";
let folder: string;
let cairn: Cairn;
let jobs: IndexJobs;
let server: Api;
const started: string[] = [];
const projects: Record<string, string> = {};

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-served-index-")));
  cairn = await open({ storage: "sqlite", dataDir: join(folder, "data"), stateDir: join(folder, "state"), embedder: { kind: "none" } });
  for (const name of ["known", "second", "third", "unknown"]) {
    projects[name] = join(folder, name);
    mkdirSync(join(folder, name, ".git"), { recursive: true });
    mkdirSync(join(folder, name, "src"));
    writeFileSync(join(folder, name, "src", "a.ts"), "export const answer = 42;\n");
  }
  symlinkSync(projects.unknown!, join(folder, "link"));
  for (const path of ["known", "second", "third", "known/src", "gone", "link"])
    await cairn.checkpoints.save({ projectPath: join(folder, path), summary: "A note" });
  const dataDir = join(folder, "data");
  jobs = indexJobs({
    dataDir,
    launch: launchHere(async (job, lease, stop) => {
      started.push(job.projectPath);
      if (job.projectPath !== projects.known) return new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
      const openTarget = async () => ({ target: embeddedTarget(cairn.code, job.projectPath), close: async () => {} });
      return runJob({ dataDir, job, lease, stop, openTarget });
    }),
    counts: (projectPath) => cairn.code.stats({ projectPath }),
    maxRunning: 1,
  });
  server = await api({
    cairn: { ...cairn, indexJobs: jobs },
    operations: [...operations, servedCodeIndex],
    allowedOrigins: [ALLOWED],
    rateLimit: false,
  });
});
afterAll(async () => {
  await jobs?.close();
  await cairn?.close();
  await removeFolder(folder);
});

const send = (method: string, path: string, body: unknown, headers: Record<string, string>) =>
  server.call(method, path, body, { headers, connection: LOCAL });
const index = (project: string, headers: Record<string, string> = bearer(TEST_TOKEN), extra: object = {}) =>
  send("POST", "/v1/code/index", { project_path: project, ...extra }, headers);

async function session(credential: { key: string } | { code: string }): Promise<Record<string, string>> {
  const { headers, body } = await send("POST", "/session", credential, {});
  return { cookie: headers.getSetCookie().at(-1)!.split(";")[0]!, "x-cairn-page-key": body.page_key };
}
const localSession = async () => {
  const { body } = await send("POST", "/session/code", undefined, bearer(TEST_TOKEN));
  return session({ code: body.code });
};

describe("indexing a folder through a server", () => {
  it.each(["read", "write", "admin"] as const)(
    "is refused to a key with %s access for all projects, and to its session",
    async (access) => {
      const { key } = await cairn.keys.create({ label: access, access, projects: "all" });
      for (const headers of [bearer(key), { "x-api-key": key }, await session({ key })]) {
        const { status, body } = await index(projects.known!, headers);
        expect([status, body.error.code]).toEqual([403, "forbidden"]);
        const { body: own } = await send("GET", "/session", undefined, headers);
        expect(own).not.toHaveProperty("indexes_folders");
      }
      expect(started).toEqual([]);
    },
  );

  it("is refused without a credential", async () => {
    expect((await index(projects.known!, {})).status).toBe(401);
  });

  it("is refused from another origin, also with the local user's session and from an allowed origin", async () => {
    const headers = await localSession();
    for (const foreign of [
      { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
      { origin: ALLOWED, "sec-fetch-site": "same-site" },
      { origin: ALLOWED },
      { origin: "http://127.0.0.1:9999" },
      { "sec-fetch-site": "none" },
    ])
      expect([foreign, (await index(projects.known!, { ...headers, ...foreign })).status]).toEqual([foreign, 403]);
    const { cookie } = headers;
    expect((await index(projects.known!, { cookie: cookie! })).status).toBe(401);
    expect(started).toEqual([]);
  });

  it.each([
    ["a folder that is no project yet", "unknown"],
    ["a folder inside a project", "known/src"],
    ["a link to a folder", "link"],
    ["a folder that is gone", "gone"],
  ])("is refused for %s", async (_, name) => {
    const { status, body } = await index(join(folder, name));
    expect([status, body.error.code]).toEqual([404, "not_found"]);
    expect(body.error.message).toMatch(/cairn code index/);
    expect(started).toEqual([]);
  });

  it.each(["..", "known", "/", "/tmp/../etc", "\u0000", "shared"])("is refused for %j", async (path) => {
    const { status } = await index(path);
    expect([400, 404]).toContain(status);
    expect(started).toEqual([]);
  });

  it("has no field with which a browser could reach further", async () => {
    for (const extra of [{ anywhere: true }, { wait: true }, { path: "/etc" }])
      expect((await index(projects.known!, bearer(TEST_TOKEN), extra)).status).toBe(400);
    expect(started).toEqual([]);
  });

  it("runs for the local user's session in a known project, and writes the index", async () => {
    const headers = { ...(await localSession()), origin: "http://127.0.0.1", "sec-fetch-site": "same-origin" };
    expect((await send("GET", "/session", undefined, headers)).body).toMatchObject({ indexes_folders: true });
    const { status, body } = await index(projects.known!, headers);
    expect([status, body.status]).toEqual([202, "pending"]);
    await expect.poll(async () => (await cairn.code.jobs({ projectPath: projects.known! }))[0]?.status).toBe("completed");
    expect(await cairn.code.stats({ projectPath: projects.known! })).toMatchObject({ files: 1 });
  });

  it("refuses a further job while the limit of running jobs is reached, and joins a running one", async () => {
    await expect.poll(async () => (await index(projects.second!)).status).toBe(202);
    const { status, body, headers } = await index(projects.third!);
    expect([status, body.error.message]).toEqual([503, expect.stringMatching(/1 index jobs are running/)]);
    expect(headers.get("retry-after")).not.toBeNull();
    expect((await index(projects.second!)).status).toBe(202);
    expect(started.filter((path) => path !== projects.known)).toEqual([projects.second]);
  });

  it("is no operation of a server that was not given the index jobs", async () => {
    const plain = await api({ cairn });
    expect((await plain.call("POST", "/v1/code/index", { project_path: projects.known })).status).toBe(404);
    expect((await plain.call("GET", "/session")).body).not.toHaveProperty("indexes_folders");
  });
});
