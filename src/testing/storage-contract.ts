import assert from "node:assert/strict";
import type { Storage } from "../ports/storage.ts";
import { CHECKPOINT_CASES, type StorageCase } from "./checkpoint-contract.ts";
import { AWKWARD_TEXTS, freshProject, sampleCheckpoint } from "./checkpoint-samples.ts";
import { CODE_CASES, sampleFile } from "./code-contract.ts";
import type { ContractCase } from "./contract.ts";
import { DELETION_CASES } from "./deletion-contract.ts";
import { EVENT_CASES } from "./event-cases.ts";
import { IDEMPOTENCY_CASES } from "./idempotency-cases.ts";
import { JOB_REPORT_CASES } from "./job-report-cases.ts";
import { KNOWLEDGE_CASES, sampleKnowledge } from "./knowledge-contract.ts";
import { RECALL_CASES } from "./recall-contract.ts";

/** What `storageContract` needs to check a storage. */
export interface StorageContract {
  /** The storage to check; all cases use it, each with its own projects. */
  readonly storage: () => Storage;
  /** Opens the same data again, as another process would; or declares that the data exist in one process only. */
  readonly openAgain: (() => Promise<Storage> | Storage) | "not possible";
}

/** The contract of storages, including their checkpoint, knowledge and code stores. */
export function storageContract({ storage, openAgain }: StorageContract): readonly ContractCase[] {
  const cases = [
    STORAGE_CASES,
    CHECKPOINT_CASES,
    RECALL_CASES,
    KNOWLEDGE_CASES,
    DELETION_CASES,
    EVENT_CASES,
    IDEMPOTENCY_CASES,
    CODE_CASES,
    JOB_REPORT_CASES,
  ].flat();
  const single = cases.map(({ name, run }) => ({ name, run: () => run(storage()) }));
  if (openAgain === "not possible") return single;
  return [...single, ...SHARED_CASES.map(({ name, run }) => ({ name, run: () => run(async () => openAgain()) }))];
}

interface SharedCase {
  readonly name: string;
  run(open: () => Promise<Storage>): Promise<void>;
}

const STORAGE_CASES: readonly StorageCase[] = [
  {
    name: "passes its own check",
    run: (storage) => storage.check(),
  },
  {
    name: "finds nothing for a new project and creates nothing on reads",
    async run(storage) {
      const project = freshProject();
      assert.equal(await storage.find(project), undefined);
      assert.equal(await storage.find(project), undefined);
      assert.ok(!(await storage.projects()).includes(project));
    },
  },
  {
    name: "creates a project once and finds it afterwards",
    async run(storage) {
      const project = freshProject();
      assert.equal(await storage.find(project), undefined);
      const made = await storage.create(project);
      assert.equal(made.projectPath, project);
      await made.checkpoints.put(sampleCheckpoint(project, { id: "one" }));
      for (const store of [await storage.create(project), await storage.find(project)]) {
        assert.equal(store?.projectPath, project);
        assert.equal((await store?.checkpoints.get("one"))?.projectPath, project);
      }
      assert.equal((await storage.projects()).filter((id) => id === project).length, 1);
    },
  },
  {
    name: "creates one project for concurrent calls",
    async run(storage) {
      const project = freshProject();
      const made = await Promise.all(Array.from({ length: 10 }, () => storage.create(project)));
      await Promise.all(made.map((store, index) => store.checkpoints.put(sampleCheckpoint(project, { id: `${index}` }))));
      assert.equal((await made[0]!.checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" })).total, 10);
    },
  },
  {
    name: "isolates projects",
    async run(storage) {
      const project = freshProject();
      const projects = [
        project,
        `${project}/`,
        `${project}/sub`,
        project.toUpperCase(),
        ...AWKWARD_TEXTS.map((text) => `${project}/${text}`),
      ];
      for (const id of projects) await (await storage.create(id)).checkpoints.put(sampleCheckpoint(id, { id: "same", summary: id }));
      for (const id of projects) {
        const store = (await storage.find(id))!.checkpoints;
        assert.equal((await store.get("same"))?.summary, id);
        assert.equal((await store.get("same"))?.projectPath, id);
        assert.equal((await store.list({ limit: 10, offset: 0, sortBy: "created_at" })).total, 1);
      }
      assert.equal(await (await storage.create(project)).checkpoints.purge(["same"]), 1);
      assert.equal((await (await storage.find(`${project}/sub`))?.checkpoints.get("same"))?.summary, `${project}/sub`);
      const listed = await storage.projects();
      assert.deepEqual(
        projects.filter((id) => !listed.includes(id)),
        [],
      );
    },
  },
  {
    name: "accepts a project path of the maximum length",
    async run(storage) {
      const project = `${freshProject()}/${"漢".repeat(4_096)}`.slice(0, 4_096);
      await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project, { id: "one" }));
      assert.equal((await (await storage.find(project))?.checkpoints.get("one"))?.projectPath, project);
    },
  },
  {
    name: "reports no problems for an intact or missing database",
    async run(storage) {
      const project = freshProject();
      assert.equal((await storage.checkProject(project)).state, "absent");
      assert.equal(await storage.find(project), undefined);
      await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project));
      const { location, ...report } = await storage.checkProject(project);
      assert.deepEqual(report, { projectPath: project, state: "sound", problems: [], damaged: [], stale: [], quarantined: 0 });
      assert.ok(location);
    },
  },
  {
    name: "counts the records of its projects in the catalogue",
    async run(storage) {
      const [project, empty, unwanted] = [freshProject(), freshProject(), freshProject()];
      const read = async () => {
        const { projects, unread } = await storage.catalogue({ isWanted: (path) => path === project || path === empty });
        assert.deepEqual(unread, []);
        assert.ok(projects.every(({ projectPath }) => projectPath !== unwanted));
        return new Map(projects.map((entry) => [entry.projectPath, entry]));
      };
      await storage.create(empty);
      await (await storage.create(unwanted)).checkpoints.put(sampleCheckpoint(unwanted));
      const { checkpoints, knowledge, code } = await storage.create(project);
      for (const id of ["one", "two", "three"])
        await checkpoints.put(sampleCheckpoint(project, { id, updatedAt: "2026-02-03T04:05:06.000Z" }));
      assert.deepEqual((await read()).get(project), {
        ...{ projectPath: project, checkpoints: 3, knowledge: 0, codeFiles: 0 },
        lastActivityAt: "2026-02-03T04:05:06.000Z",
      });
      await checkpoints.delete(["one"], "2026-02-03T04:05:07.000Z");
      await knowledge.put(sampleKnowledge({ id: "known" }));
      await code.commit({ at: "2026-02-03T04:05:07.000Z", files: [sampleFile("a.ts", ["x"])] });
      const { lastActivityAt: _, ...counted } = (await read()).get(project)!;
      assert.deepEqual(counted, { projectPath: project, checkpoints: 2, knowledge: 1, codeFiles: 1 });
      assert.equal((await read()).get(empty)?.checkpoints, 0);
      await storage.remove(project);
      assert.equal((await read()).get(project), undefined);
      await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project));
      assert.equal((await read()).get(project)?.checkpoints, 1);
    },
  },
  {
    name: "erases one project with its code, and creates it again",
    async run(storage) {
      const [project, other] = [freshProject(), freshProject()];
      await assert.rejects(storage.remove(project), { code: "not_found" });
      for (const path of [project, other]) await (await storage.create(path)).checkpoints.put(sampleCheckpoint(path, { id: "one" }));
      await storage.remove(project);
      assert.ok(!(await storage.projects()).includes(project));
      assert.equal(await storage.find(project), undefined);
      assert.equal((await storage.checkProject(project)).state, "absent");
      await assert.rejects(storage.remove(project), { code: "not_found" });
      const again = await storage.create(project);
      assert.equal(await again.checkpoints.get("one"), undefined);
      await again.checkpoints.put(sampleCheckpoint(project, { id: "two" }));
      assert.equal((await (await storage.find(other))?.checkpoints.get("one"))?.id, "one");
    },
  },
  {
    name: "quarantines a database and creates a new one",
    async run(storage) {
      const project = freshProject();
      await assert.rejects(storage.quarantine(project, []), { code: "not_found" });
      await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project, { id: "old" }));
      const report = await storage.quarantine(project, ["as a test"]);
      assert.equal(report.projectPath, project);
      assert.deepEqual(report.problems, ["as a test"]);
      assert.notEqual(report.movedTo, report.location);
      assert.equal(await storage.find(project), undefined);
      assert.ok(!(await storage.projects()).includes(project));
      const again = await storage.create(project);
      assert.equal(await again.checkpoints.get("old"), undefined);
      await again.checkpoints.put(sampleCheckpoint(project, { id: "new" }));
      assert.equal((await again.checkpoints.get("new"))?.id, "new");
    },
  },
];

const SHARED_CASES: readonly SharedCase[] = [
  {
    name: "shows writes immediately to a second handle, in both directions",
    async run(open) {
      const project = freshProject();
      const storage = await open();
      const other = await open();
      try {
        assert.equal(await other.find(project), undefined);
        const here = await storage.create(project);
        await here.checkpoints.put(sampleCheckpoint(project, { id: "here" }));
        const there = (await other.find(project))!;
        assert.equal((await there.checkpoints.get("here"))?.id, "here");
        await there.checkpoints.put(sampleCheckpoint(project, { id: "there" }));
        assert.equal((await here.checkpoints.get("there"))?.id, "there");
        assert.equal(await here.checkpoints.purge(["there"]), 1);
        assert.equal(await there.checkpoints.get("there"), undefined);
        assert.ok((await other.projects()).includes(project));
      } finally {
        await storage.close();
        await other.close();
      }
    },
  },
  {
    name: "keeps stored data after closing and reopening",
    async run(open) {
      const project = freshProject();
      const saved = sampleCheckpoint(project);
      const first = await open();
      await (await first.create(project)).checkpoints.put(saved);
      await first.close();
      const second = await open();
      assert.deepEqual(await (await second.find(project))?.checkpoints.get(saved.id), saved);
      await second.close();
    },
  },
  {
    name: "accepts concurrent writes from several handles",
    async run(open) {
      const project = freshProject();
      const handles = await Promise.all([open(), open(), open()]);
      const saves = handles.map(async (handle) => {
        const { checkpoints } = await handle.create(project);
        await Promise.all(Array.from({ length: 50 }, () => checkpoints.put(sampleCheckpoint(project))));
      });
      await Promise.all(saves);
      for (const handle of handles) {
        const page = await (await handle.find(project))!.checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" });
        assert.equal(page.total, 150);
        await handle.close();
      }
    },
  },
];
