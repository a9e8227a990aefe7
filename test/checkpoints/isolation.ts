import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpenOptions, open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { operations } from "../../src/operations/list.ts";
import { encodeCursor } from "../../src/text/cursor.ts";
import { type Answer, api, REMOTE } from "../http/api.ts";
import { testEmbedder } from "../support/embedders.ts";

/** Attacks with a key of one project on another; the same for every storage. Nothing of the other project may come back. */
export function isolationSuite(name: string, storageOptions: (dataDir: string) => Promise<OpenOptions>): void {
  describe(`isolation on ${name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-isolation-"));
    const [mine, theirs, link] = ["mine", "theirs", "link"].map((part) => join(folder, part)) as [string, string, string];
    const SECRET = "zebra-plan";
    let cairn: Cairn;
    let theirId: string;
    let attack: (path: string, body: Record<string, unknown>, headers?: Record<string, string>) => Promise<Answer>;

    beforeAll(async () => {
      mkdirSync(theirs);
      symlinkSync(theirs, link);
      cairn = await open({ ...(await storageOptions(join(folder, "data"))), embedder: [testEmbedder()] });
      theirId = (
        await cairn.checkpoints.save({
          projectPath: theirs,
          summary: SECRET,
          description: SECRET,
          context: { plan: SECRET },
          tags: [SECRET],
        })
      ).id;
      await cairn.checkpoints.save({ projectPath: mine, summary: "mine", tags: ["a"] });
      const { key } = await cairn.keys.create({ label: "attacker", access: "write", projects: [mine, link] });
      const { call } = await api({ cairn, operations, rateLimit: { perSecond: 10_000, burst: 10_000 } });
      attack = (path, body, headers = {}) =>
        call("POST", path, body, { connection: REMOTE, headers: { authorization: `Bearer ${key}`, ...headers } });
    });
    afterAll(async () => {
      await cairn.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const harmless = ({ status, body }: Answer, expected: number) => {
      expect(JSON.stringify(body)).not.toContain(SECRET);
      expect(status, JSON.stringify(body)).toBe(expected);
    };
    const unharmed = async () =>
      expect(await cairn.checkpoints.get({ projectPath: theirs, id: theirId })).toMatchObject({ summary: SECRET, tags: [SECRET] });

    it("refuses the other project by its name on every operation that takes one", async () => {
      const scoped = operations.filter(({ input, access }) => "project_path" in input.shape && access !== "admin");
      expect(scoped.length).toBeGreaterThan(10);
      const plausible = { id: theirId, query: SECRET, summary: "x", model: "test", keep_last: 0, records: [{}] };
      for (const { name: one, input } of scoped) {
        const body = { project_path: theirs, ...Object.fromEntries(Object.entries(plausible).filter(([field]) => field in input.shape)) };
        const [noun, ...verb] = one.split("_");
        const answer = await attack(`/v1/${noun}/${verb.join("_")}`, body);
        expect(JSON.stringify(answer.body)).not.toContain(SECRET);
        expect([400, 403, 404], one).toContain(answer.status);
      }
      await unharmed();
    });

    it.each([
      ["a parent folder", () => join(mine, "..", "theirs").replace(theirs, `${mine}/../theirs`)],
      ["a trailing slash", () => `${theirs}/`],
      ["another case", () => theirs.toUpperCase()],
      ["a NUL character", () => `${mine}\0${theirs}`],
      ["a pattern", () => join(folder, "*")],
      ["SQL", () => `${mine}' OR '1'='1`],
      ["nothing", () => ""],
    ])("gives nothing for %s as the path", async (_, path) => {
      const answer = await attack("/v1/checkpoint/list", { project_path: path() });
      expect([400, 403]).toContain(answer.status);
      expect(JSON.stringify(answer.body)).not.toContain(SECRET);
    });

    it("takes a link to the other project for a project of its own", async () => {
      harmless(await attack("/v1/checkpoint/list", { project_path: link }), 200);
      harmless(await attack("/v1/checkpoint/get", { project_path: link, id: theirId }), 404);
      harmless(await attack("/v1/checkpoint/search", { project_path: link, query: "plan" }), 200);
    });

    it("finds nothing by the other's id, and changes and deletes nothing", async () => {
      harmless(await attack("/v1/checkpoint/get", { project_path: mine, id: theirId }), 404);
      harmless(await attack("/v1/checkpoint/resume", { project_path: mine, id: theirId, level: "full" }), 404);
      harmless(await attack("/v1/checkpoint/update", { project_path: mine, id: theirId, summary: "taken" }), 404);
      harmless(await attack("/v1/checkpoint/delete", { project_path: mine, id: theirId }), 404);
      for (const verb of ["restore", "purge"]) harmless(await attack(`/v1/checkpoint/${verb}`, { project_path: mine, id: theirId }), 404);
      const record = { id: theirId, summary: "taken", created_at: "2026-01-01T00:00:00Z" };
      harmless(await attack("/v1/checkpoint/import", { project_path: mine, records: [record] }), 200);
      harmless(await attack("/v1/checkpoint/delete", { project_path: mine, id: theirId }), 200);
      harmless(await attack("/v1/checkpoint/prune", { project_path: mine, keep_last: 1 }), 200);
      await unharmed();
    });

    it.each([
      "%",
      "_",
      "%' OR 1=1 --",
      "a' UNION SELECT * FROM checkpoints --",
      "*",
      '"',
      "}",
      "$1",
      "a,b",
      "\\",
      "..",
      "'; DROP TABLE checkpoints; --",
    ])("takes the tag, query and id %s for what it is", async (crafted) => {
      for (const tag_match of ["exact", "substring"]) {
        const { body } = await attack("/v1/checkpoint/list", { project_path: mine, tags: [crafted], tag_match });
        expect(body.total).toBe(0);
      }
      const { status, body } = await attack("/v1/checkpoint/search", { project_path: mine, query: `${crafted} plan`, tags: [] });
      expect(status).toBe(200);
      for (const { checkpoint } of body.results) expect(checkpoint.project_path).toBe(mine);
      harmless(await attack("/v1/checkpoint/get", { project_path: mine, id: crafted }), 404);
    });

    it("gives only its own for cursors of the other's lists and made-up ones", async () => {
      const at = "2999-01-01T00:00:00.000Z";
      const cursors = [
        encodeCursor("created_at", at, theirId),
        encodeCursor("created_at", at, "' OR '1'='1"),
        encodeCursor("created_at", `${at}' OR 1=1 --`, "x"),
      ];
      for (const cursor of [...cursors, "garbage", Buffer.from('["created_at"]').toString("base64url")]) {
        const { body } = await attack("/v1/checkpoint/list", { project_path: mine, cursor });
        expect(JSON.stringify(body)).not.toContain(SECRET);
        for (const checkpoint of body.checkpoints ?? []) expect(checkpoint.project_path).toBe(mine);
      }
    });

    it("lets no header lead elsewhere, and no other key or none in", async () => {
      const headers = { "x-project-path": theirs, "x-forwarded-for": "127.0.0.1", "x-original-url": "/v1/key/list", host: "127.0.0.1" };
      harmless(await attack("/v1/checkpoint/list", { project_path: theirs }, headers), 403);
      harmless(await attack("/v1/checkpoint/list", { project_path: theirs }, { authorization: "Bearer nonsense" }), 401);
      harmless(await attack("/v1/checkpoint/list", { project_path: theirs }, { authorization: "" }), 401);
      harmless(await attack("/v1/checkpoint/list", { project_path: mine, project_id: theirs }), 400);
    });

    it("counts only what the caller may see", async () => {
      const { projects, total } = await cairn.stats.read({ mayTouch: (path) => path === mine });
      expect({ total, paths: projects.map(({ projectPath }) => projectPath) }).toEqual({ total: 1, paths: [mine] });
      if (name !== "memory") expect(projects[0]?.bytes).toBeGreaterThan(1_000);
    });

    it("leaves the other project out of a search over all", async () => {
      const answer = await attack("/v1/checkpoint/search_all", { query: SECRET, top_k: 100 });
      harmless(answer, 200);
      for (const { checkpoint } of answer.body.results) expect(checkpoint.project_path).toBe(mine);
    });
  });
}
