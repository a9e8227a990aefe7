import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { memoryStorage, type ProjectStore, type Storage } from "../../src/testing/index.ts"; // from "cairn-memory/testing"

/** The verbs that change something: each call becomes one line of the project's journal. */
const WRITES = {
  checkpoints: ["put", "replace", "delete", "restore", "purge", "purgeDeleted", "putDeleted"],
  knowledge: ["put", "replace", "delete", "restore", "purge", "purgeDeleted", "putDeleted", "feedback", "apply"],
  code: ["commit", "reconcile", "compact"],
  embeddings: ["addVersion", "putVectors", "makeCurrent", "dropVersion", "dropDamaged"],
} as const satisfies { [Name in Collection]: readonly (keyof ProjectStore[Name])[] } & {
  embeddings: readonly (keyof ProjectStore["checkpoints"]["embeddings"])[];
};

type Collection = "checkpoints" | "knowledge" | "code";

interface Entry {
  readonly collection: Collection;
  readonly of: "records" | "embeddings";
  readonly verb: string;
  readonly args: readonly unknown[];
}

interface Project {
  readonly store: ProjectStore;
  readonly path: string;
  close(): Promise<void>;
}

/**
 * Opens a storage that answers from memory and appends every write to a journal, with fsync, before it acknowledges the call. It is for
 * one process and for data that fit in memory.
 */
export async function journalStorage(folder: string): Promise<Storage> {
  await mkdir(folder, { recursive: true });
  const memory = memoryStorage();
  const projects = new Map<string, Promise<Project>>();
  const pathOf = (projectPath: string) => join(folder, `${createHash("sha256").update(projectPath).digest("hex")}.journal`);
  const openProject = (projectPath: string): Promise<Project> => {
    const opening = projects.get(projectPath) ?? replay(pathOf(projectPath), projectPath, memory);
    projects.set(projectPath, opening);
    return opening;
  };
  for (const file of await readdir(folder)) if (file.endsWith(".journal")) await openProject(await projectIdOf(join(folder, file)));

  return {
    ...memory,
    create: async (projectPath) => (await openProject(projectPath)).store,
    find: async (projectPath) => (await projects.get(projectPath))?.store,
    checkProject: async (projectPath) => ({ ...(await memory.checkProject(projectPath)), location: pathOf(projectPath) }),
    async quarantine(projectPath, problems) {
      const report = await memory.quarantine(projectPath, problems);
      const project = await projects.get(projectPath);
      projects.delete(projectPath);
      await project?.close();
      const movedTo = `${pathOf(projectPath)}.${Date.now()}`;
      await rename(pathOf(projectPath), movedTo);
      return { ...report, location: pathOf(projectPath), movedTo };
    },
    async remove(projectPath) {
      await memory.remove(projectPath);
      const project = await projects.get(projectPath);
      projects.delete(projectPath);
      await project?.close();
      await rm(pathOf(projectPath));
    },
    async close() {
      for (const project of projects.values()) await (await project).close();
      await memory.close();
    },
  };
}

/** Opens a project's journal, repeats its writes in memory, and returns stores that append further writes to it. */
async function replay(path: string, projectPath: string, memory: Storage): Promise<Project> {
  const inMemory = await memory.create(projectPath);
  const file = await open(path, "a+");
  const text = await file.readFile("utf8");
  const whole = text.slice(0, text.lastIndexOf("\n") + 1); // a crash can cut off the last line, which was never acknowledged
  await file.truncate(Buffer.byteLength(whole));
  const [head, ...lines] = whole.split("\n").filter(Boolean);
  if (head === undefined) await append(file, projectPath);
  for (const line of lines) await perform(inMemory, decode(line) as Entry).catch(() => {}); // it failed the first time, too

  let last: Promise<unknown> = Promise.resolve();
  const write = (entry: Entry): Promise<unknown> => {
    const done = last.then(() => append(file, entry)).then(() => perform(inMemory, entry));
    last = done.catch(() => {});
    return done;
  };
  const collection = <Name extends Collection>(name: Name): ProjectStore[Name] => ({
    ...inMemory[name],
    ...journaled(WRITES[name], (verb, args) => write({ collection: name, of: "records", verb, args })),
    embeddings: {
      ...inMemory[name].embeddings,
      ...journaled(WRITES.embeddings, (verb, args) => write({ collection: name, of: "embeddings", verb, args })),
    },
  });
  return {
    path,
    store: {
      projectPath,
      checkpoints: collection("checkpoints"),
      knowledge: collection("knowledge"),
      code: collection("code"),
      events: inMemory.events,
    },
    async close() {
      await last;
      await file.close();
    },
  };
}

/** Returns one function per verb that passes its arguments to `write`. */
function journaled(verbs: readonly string[], write: (verb: string, args: readonly unknown[]) => Promise<unknown>) {
  return Object.fromEntries(verbs.map((verb) => [verb, (...args: unknown[]) => write(verb, args)]));
}

async function perform(project: ProjectStore, { collection, of, verb, args }: Entry): Promise<unknown> {
  const store = of === "records" ? project[collection] : project[collection].embeddings;
  return (store as unknown as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)[verb]!(...args);
}

async function append(file: FileHandle, value: unknown): Promise<void> {
  await file.appendFile(`${serialize(value).toString("base64")}\n`);
  await file.datasync();
}

const decode = (line: string): unknown => deserialize(Buffer.from(line, "base64"));

async function projectIdOf(path: string): Promise<string> {
  const file = await open(path);
  const { value } = await file.readLines()[Symbol.asyncIterator]().next();
  await file.close();
  return decode(value as string) as string;
}
