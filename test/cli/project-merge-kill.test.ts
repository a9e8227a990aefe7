import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { processStage, until } from "../client/processes.ts";
import { counts, saveTogether } from "../faults/processes.ts";
import { killProcess } from "../support/processes.ts";

const s = processStage();
afterAll(() => s.clear());

const KILLS = counts({ short: 4, soak: 30 });
const CHECKPOINTS = 1_500;
const FACTS = 90;

it(`moves every record once through ${KILLS} kills with -9`, { timeout: 600_000 }, async () => {
  const from = join(s.project, "packages", "api");
  mkdirSync(from, { recursive: true });
  const dataDir = join(s.home, ".cairn");
  const json = async (...args: string[]) => JSON.parse((await s.run(...args, "--json")).stdout);
  const saved = await saveTogether(1, { storage: "sqlite", dataDir, project: from, count: CHECKPOINTS, atOnce: 50 });
  const facts = Array.from({ length: FACTS }, (_, number) => ({ id: `k${number}`, question: `What is ${number}?`, answer: "A number." }));
  s.write("facts.json", JSON.stringify(facts));
  expect(await json("knowledge", "import", "facts.json", "--project", from)).toMatchObject({ added: FACTS });
  for (const success of ["--success", "--no-success"]) await s.run("knowledge", "feedback", "k7", success, "--project", from);
  // From now on, the folder belongs to the project around it.
  mkdirSync(join(s.project, ".git"));

  const totals = async (): Promise<Record<string, number>> => {
    const { projects } = await json("projects");
    return Object.fromEntries(projects.map((one: Record<string, unknown>) => [one.project_path, one.checkpoints]));
  };
  expect(await totals()).toEqual({ [from]: CHECKPOINTS });
  const target = join(dataDir, "projects", `${projectDatabaseName(s.project)}.db`);
  for (let kill = 0; kill < KILLS; kill++) {
    const child = s.start(["project", "merge", from]);
    // The first kill is at the first copy; the others are at any moment.
    if (kill === 0) await until(() => existsSync(target));
    else await sleep(200 + Math.random() * 1_200);
    await killProcess(child);
    const { [from]: left = 0, [s.project]: arrived = 0 } = await totals();
    expect(left + arrived).toBeGreaterThanOrEqual(CHECKPOINTS);
    if (kill === 0) expect(left).toBeGreaterThan(0);
  }
  expect((await s.run("project", "merge", from)).code).toBeOneOf([0, 3]); // 3: a killed process had completed it

  expect(await totals()).toEqual({ [s.project]: CHECKPOINTS });
  const exported = (await s.run("checkpoint", "export")).stdout.trim().split("\n").slice(1);
  expect(exported.map((line) => JSON.parse(line).id).sort()).toEqual(saved.sort());
  const { knowledge } = await json("knowledge", "list", "--limit", "100", "--max-tokens", "100000");
  expect(knowledge.map(({ id }: { id: string }) => id).sort()).toEqual(facts.map(({ id }) => id).sort());
  expect(knowledge.find(({ id }: { id: string }) => id === "k7")).toMatchObject({ usage_count: 2, successes: 1 });
});
