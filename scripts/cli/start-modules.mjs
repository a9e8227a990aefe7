// Finds the modules that a short command needs. The build puts the others into a file that is loaded on first use.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

/**
 * Returns the modules that `cairn checkpoint list` needs: those with a function that the command calls, and what such a module uses while it is
 * evaluated or in a function that ran. A module too many costs a little time; one too few makes the command load the file with the others.
 */
export async function startModules(dist, entries) {
  const { whileLoading, whileRunning } = recordCalls(dist, entries);
  const ran = new Map();
  for (const [file, ranges] of [...whileLoading, ...whileRunning]) ran.set(file, [...(ran.get(file) ?? []), ...ranges]);
  const read = await moduleReader();
  const hasCalled = (path, name) => ran.get(path)?.some(({ functionName, count }) => functionName === name && count > 0);
  const needed = new Set();
  const pending = whileRunning.filter(([, ranges]) => ranges.some(({ count }) => count > 0)).map(([file]) => file);
  while (pending.length > 0) {
    const file = pending.pop();
    if (needed.has(file)) continue;
    needed.add(file);
    for (const { path, name, at, inFunction } of read(file).uses) {
      const used = !inFunction || hasRun(ran.get(file) ?? [], at);
      if (used && (!inFunction || !read(path).functions.has(name) || hasCalled(path, name))) pending.push(path);
    }
  }
  return needed;
}

/** Whether the innermost function at an offset ran. */
function hasRun(ranges, at) {
  const around = ranges.filter(({ startOffset, endOffset }) => startOffset <= at && at < endOffset);
  const innermost = Math.max(...around.map(({ startOffset }) => startOffset));
  return around.some(({ startOffset, count }) => startOffset === innermost && count > 0);
}

/** Runs the command in a process of its own. Returns the ranges of functions with their calls, by file, before and during the command. */
function recordCalls(dist, entries) {
  const project = mkdtempSync(join(tmpdir(), "cairn-build-"));
  const run = (...args) => {
    const script = join(import.meta.dirname, "run-command.mjs");
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
    if (status !== 0) throw new Error(`The build could not ${args[0]} checkpoints: ${stderr}`);
    return stdout;
  };
  try {
    run("save", project, dist);
    return JSON.parse(run("list", project, dist, ...entries));
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

/** Returns a function that lists the functions that a module exports, and the places where it uses an import. */
async function moduleReader() {
  const [{ parseAst }, { Visitor }] = await Promise.all([import("rolldown/parseAst"), import("rolldown/utils")]);
  const known = new Map();
  return (file) => {
    if (!known.has(file)) known.set(file, readModule(file, parseAst(readFileSync(file, "utf8")), Visitor));
    return known.get(file);
  };
}

function readModule(file, program, Visitor) {
  const imported = new Map();
  const uses = [];
  const functions = new Set();
  for (const node of program.body) {
    if (node.source?.value.startsWith(".")) {
      const path = resolve(dirname(file), node.source.value);
      if (node.type !== "ImportDeclaration" || node.specifiers.length === 0) uses.push({ path, inFunction: false });
      else for (const { local, imported: exported } of node.specifiers) imported.set(local.name, { path, name: exported?.name });
    } else if (node.type === "ExportNamedDeclaration" && node.declaration?.type === "FunctionDeclaration")
      functions.add(node.declaration.id.name);
  }
  let depth = 0;
  const enter = () => void depth++;
  const leave = () => void depth--;
  const visitor = new Visitor({
    FunctionDeclaration: enter,
    "FunctionDeclaration:exit": leave,
    FunctionExpression: enter,
    "FunctionExpression:exit": leave,
    ArrowFunctionExpression: enter,
    "ArrowFunctionExpression:exit": leave,
    Identifier({ name, start }) {
      if (imported.has(name)) uses.push({ ...imported.get(name), at: start, inFunction: depth > 0 });
    },
  });
  visitor.visit({ ...program, body: program.body.filter(({ type }) => type !== "ImportDeclaration") });
  return { uses, functions };
}
