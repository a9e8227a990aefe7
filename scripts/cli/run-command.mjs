// Saves a checkpoint, or lists checkpoints and prints the ranges of all functions, with their calls. For scripts/cli/start-modules.mjs.
// node run-command.mjs save|list <project> <dist> <file of dist to load first>...
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [command, project, dist, ...files] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(dist, file)).href);

if (command === "save") await save();
else await list();

async function save() {
  const { open } = await load("index.js");
  const cairn = await open({ dataDir: join(project, ".cairn"), embedder: { kind: "none" } });
  await cairn.checkpoints.save({ projectPath: project, summary: "First", tags: ["build"] });
  await cairn.close();
}

async function list() {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const { runCli } = await load("cli/run.js");
  for (const file of files) await load(file);
  const whileLoading = await takeRanges(session);
  const output = { write: () => true, on() {} };
  const host = { stdin: process.stdin, stdout: output, stderr: output, env: {}, cwd: project, home: project, now: () => new Date() };
  process.exitCode = await runCli(["checkpoint", "list"], { ...host, signal: new AbortController().signal });
  console.log(JSON.stringify({ whileLoading, whileRunning: await takeRanges(session) }));
}

async function takeRanges(session) {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const rangeOf = ({ functionName, ranges: [{ startOffset, endOffset, count }] }) => ({ functionName, startOffset, endOffset, count });
  return result.flatMap(({ url, functions }) => (url.startsWith("file:") ? [[fileURLToPath(url), functions.map(rangeOf)]] : []));
}
