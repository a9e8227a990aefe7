// Saves to many projects at once, then reads, searches and lists them, and prints what happened as JSON.
// Arguments: the data folder and the number of projects. The limit of open files is that of this process.
import { readdirSync, readFileSync } from "node:fs";
import { open } from "../../dist/index.js";
import { sqliteSystemStorage } from "../../dist/stores/sqlite/systems/storage.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";

const [dataDir, count] = [process.argv[2], Number(process.argv[3])];
const projects = Array.from({ length: count }, (_, index) => `/many/project-${index}`);
const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))[1]);
let mostOpen = 0;
const watching = setInterval(() => {
  mostOpen = Math.max(mostOpen, readdirSync("/proc/self/fd").length);
}, 5);

const cairn = await open({ dataDir, stateDir: `${dataDir}/state`, embedder: [hashEmbedder({ model: "hash", dimension: 64 })] });
const failures = [];
const settle = async (work) => {
  const results = await Promise.allSettled(work);
  for (const { reason } of results) if (reason) failures.push(reason.message);
  return results.map(({ value }) => value);
};

await settle(projects.map((projectPath, index) => cairn.checkpoints.save({ projectPath, summary: `Project number ${index}` })));
const found = await settle(projects.map((projectPath) => cairn.checkpoints.search({ projectPath, query: "project number" })));
const again = await settle(projects.map((projectPath) => cairn.checkpoints.list({ projectPath })));
const systems = sqliteSystemStorage({ stateDir: `${dataDir}/state` });
await settle(projects.map((_, index) => systems.create(`system-${index}`)));
const listed = (await systems.systems()).length;
await systems.close();
const { findings } = await cairn.doctor.examine({ quick: true });
await cairn.close();
clearInterval(watching);
console.log(
  JSON.stringify({
    limit,
    mostOpen,
    failures: failures.slice(0, 5),
    failed: failures.length,
    found: found.filter((answer) => answer?.hits.length === 1).length,
    listed: again.filter((answer) => answer?.total === 1).length,
    systems: listed,
    damaged: findings.filter(({ check }) => check === "integrity").length,
  }),
);
