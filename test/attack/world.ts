import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256Hex } from "../../src/model/ids.ts";
import { open } from "../../src/open/open.ts";
import { END, graph, openRunStore } from "../../src/runs.ts";
import { system } from "../../src/systems.ts";
import { removeFolder } from "../support/processes.ts";
import { type Audience, type Canary, canaryText } from "./canaries.ts";
import type { Folders } from "./server.ts";

/** Texts that every caller may know: they let a search find the planted records without naming a canary. */
export const LURE = "harbour";

const source = (name: string, text: string) => `export function ${name}(): string {\n  return "${LURE} ${text}";\n}\n`;

/** The files of the own project: enough of them, with paths long enough, that a slow pattern shows. */
export const OWN_FILES = Array.from({ length: 40 }, (_, number) => ({
  path: `src/${"long-segment/".repeat(5)}aaaaaaaaaaaaaaaa${number}.ts`,
  content: source(`own${number}`, "own"),
}));

export interface World {
  readonly folders: Folders;
  /** The project of the limited keys. */
  readonly own: string;
  /** The project that they must never see or change. */
  readonly other: string;
  /** A link inside the own project that leads to the other one. */
  readonly link: string;
  readonly canaries: readonly Canary[];
  /** Ids in the other project, by what they identify. */
  readonly ids: Readonly<Record<"checkpoint" | "knowledge" | "run" | "system", string>>;
  /** A file of the other project's index, relative to it. */
  readonly file: string;
  remove(): Promise<void>;
}

/** Stores canaries in every kind of record of one project, and harmless records in another. */
export async function plantWorld(): Promise<World> {
  const canaries: Canary[] = [];
  const plant = (kind: string, audience: Audience = "all-projects") => {
    const text = canaryText(kind, sha256Hex);
    canaries.push({ kind, text, audience });
    return text;
  };
  const adopt = (kind: string, text: string, audience: Audience = "all-projects") => {
    canaries.push({ kind, text, audience });
    return text;
  };

  const root = realpathSync(mkdtempSync(join(tmpdir(), "cairn-attack-")));
  const serverFolder = join(root, plant("server folder", "operators"));
  const folders = { dataDir: join(serverFolder, "data"), stateDir: join(serverFolder, "state"), home: join(serverFolder, "home") };
  const own = join(root, "projects", "alpha");
  const other = join(root, "projects", plant("project path"));
  for (const folder of [folders.home, own, other]) mkdirSync(folder, { recursive: true });
  const link = join(own, "link");
  symlinkSync(other, link);
  writeFileSync(join(other, "cairn.config.json"), JSON.stringify({ telemetry: { service_name: plant("configuration") } }));

  const cairn = await open({ dataDir: folders.dataDir, stateDir: folders.stateDir, embedder: { kind: "none" } });
  for (const number of [1, 2, 3])
    await cairn.checkpoints.save({ projectPath: own, summary: `Own ${LURE} ${number}`, context: { branch: "main" }, tags: ["own"] });
  const checkpoint = await cairn.checkpoints.save({
    projectPath: other,
    summary: `The ${LURE} ${plant("checkpoint summary")}`,
    description: `It ${plant("checkpoint description")} says`,
    context: { [plant("context key")]: plant("context value") },
    tags: [plant("tag")],
  });
  await cairn.checkpoints.save({ projectPath: other, summary: `Another ${LURE}` });
  const knowledge = await cairn.knowledge.save({
    projectPath: other,
    question: `Where is the ${LURE} ${plant("question")}?`,
    answer: `It is ${plant("answer")}.`,
    category: plant("category"),
  });
  await cairn.knowledge.save({ projectPath: other, question: `Is there another ${LURE}?`, answer: "Yes." });
  await cairn.knowledge.save({ projectPath: own, question: `Where is our ${LURE}?`, answer: "Here." });
  await cairn.knowledge.save({ scope: "shared", question: `Shared ${LURE} ${plant("shared question")}`, answer: plant("shared answer") });
  const file = `src/${plant("file name")}.ts`;
  await index(cairn, other, [{ path: file, content: source(plant("symbol"), plant("source text")) }]);
  await index(cairn, own, OWN_FILES);
  await cairn.close();

  const run = await plantRun(folders, other, plant);
  const systemId = await plantSystem(folders, plant);
  adopt("checkpoint id", checkpoint.id);
  adopt("knowledge id", knowledge.id);
  const ids = { checkpoint: checkpoint.id, knowledge: knowledge.id, run, system: systemId };
  return { folders, own, other, link, canaries, ids, file, remove: () => removeFolder(root) };
}

type Plant = (kind: string, audience?: Audience) => string;

async function index(
  cairn: Awaited<ReturnType<typeof open>>,
  projectPath: string,
  files: readonly { path: string; content: string }[],
): Promise<void> {
  const { id } = await cairn.indexing.send({ projectPath, files });
  await cairn.indexing.job(id, { waitMs: 20_000 });
}

async function plantRun({ dataDir }: Folders, project: string, plant: Plant): Promise<string> {
  const store = await openRunStore({ storage: "sqlite", path: join(dataDir, "runs.db") });
  const node = plant("run node");
  const question = plant("run question");
  const flow = graph<{ secret: string }>({ name: plant("run graph") })
    .node(node, (state, { interrupt }) => ({ ...state, answer: interrupt(question) }))
    .edge(node, END)
    .entry(node)
    .compile();
  const runId = `run-${plant("run id")}`;
  await flow.run({ secret: plant("run state") }, { store, runId, project });
  await flow.run({ secret: LURE }, { store, runId: `second-${runId}`, project });
  await store.close();
  return runId;
}

async function plantSystem({ stateDir }: Folders, plant: Plant): Promise<string> {
  const systemId = `system-${plant("system id")}`;
  const planted = system({ systemId, storage: { storage: "sqlite", stateDir }, maxAttempts: 1, snapshots: { everyMs: 0 } });
  const component = planted.component(plant("component"));
  const port = component.port<string>(plant("port"));
  await port.receive({ id: plant("message id"), offset: 0, data: plant("message") }, (state, message) => state.set("last", message.data));
  await port.receive({ id: `dead-${plant("dead letter id")}`, offset: 1, data: plant("dead letter") }, () => {
    throw new Error(plant("failure reason"));
  });
  await planted.snapshot();
  await planted.close();
  return systemId;
}
