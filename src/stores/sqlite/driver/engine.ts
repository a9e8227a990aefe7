import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import type { DatabaseSync as NodeDatabaseSync, backup as nodeBackup } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { builtFile } from "../../../files/built-file.ts";
import { assertDescriptorsLeft } from "./errors.ts";

/** The part of the `node:sqlite` interface that Cairn uses; both engines have it. */
export type Engine = typeof NodeDatabaseSync;

export interface LoadedEngine {
  readonly DatabaseSync: Engine;
  readonly backup: typeof nodeBackup;
  readonly name: string;
}

/** `node:sqlite` where this Node has it complete, else the prebuilt package with the same interface. */
export async function loadEngine(): Promise<LoadedEngine> {
  engine ??= choose().then(({ DatabaseSync, ...rest }) => ({ ...rest, DatabaseSync: harden(DatabaseSync) }));
  return engine;
}

/**
 * Makes every connection distrust the file that it opens: a file may have come with a repository. Its triggers and views can call only
 * harmless functions, and no statement can write to the schema itself or to the tables inside a full-text index.
 */
function harden(DatabaseSync: Engine): Engine {
  return class extends DatabaseSync {
    constructor(path: string, options: ConstructorParameters<Engine>[1] = {}) {
      super(path, options);
      if (options.open === false) return;
      this.exec("PRAGMA trusted_schema = OFF");
      (this as { enableDefensive?: (active: boolean) => void }).enableDefensive?.(true); // Node 22 has no such call
    }
  };
}

let engine: Promise<LoadedEngine> | undefined;

async function choose(): Promise<LoadedEngine> {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  // Before 22.16 the built-in module lacks options we need.
  if (major > 22 || (major === 22 && minor >= 16)) {
    const builtin = withoutSqliteWarning(() => process.getBuiltinModule("node:sqlite"));
    if (isComplete(builtin.DatabaseSync)) return { DatabaseSync: builtin.DatabaseSync, backup: builtin.backup, name: "node:sqlite" };
  }
  try {
    const { DatabaseSync, backup } = loadBinding();
    return { DatabaseSync, backup, name: "@photostructure/sqlite" };
  } catch (error) {
    assertDescriptorsLeft(); // its loader reports a missing file instead
    throw error;
  }
}

type Binding = Pick<LoadedEngine, "DatabaseSync" | "backup">;

/** Loads the binary of this platform. The common case needs no module loader, which takes as long as the rest; the loader knows the others and names what is missing. */
function loadBinding(): Binding {
  const module = { exports: {} as Binding };
  try {
    if (!existsSync("/etc/alpine-release")) {
      process.dlopen(module, builtFile(`sqlite/prebuilds/${process.platform}-${process.arch}/glibc.node`));
      return module.exports;
    }
  } catch {
    // A Linux with musl that is not Alpine, or a platform without a binary.
  }
  const file = builtFile("sqlite/load-binding.cjs");
  return createRequire(file)(file)() as Binding;
}

/** Runs `load` without Node 22's warning that SQLite is experimental: a user can do nothing about it. Other warnings pass. */
export function withoutSqliteWarning<T>(load: () => T): T {
  const emitWarning = process.emitWarning;
  process.emitWarning = ((warning: string | Error, ...rest: never[]) => {
    if (!String(warning).includes("SQLite is an experimental feature")) emitWarning.call(process, warning, ...rest);
  }) as typeof process.emitWarning;
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * Frees the files and locks of connections that were closed. The bundled engine cannot finalize a statement: a closed connection keeps
 * its descriptors until its statements are collected as garbage, and their finalizers run in the next turn of the event loop.
 */
export async function releaseClosedConnections(): Promise<void> {
  if ((await loadEngine()).name === "node:sqlite") return;
  collectGarbage ??= exposeGarbageCollection();
  collectGarbage();
  await nextTurn();
}

let collectGarbage: (() => void) | undefined;

function exposeGarbageCollection(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

function isComplete(DatabaseSync: Engine): boolean {
  const probe = new DatabaseSync(":memory:");
  try {
    probe.exec("CREATE VIRTUAL TABLE probe USING fts5(text)");
    probe.prepare("SELECT ?1, ?1").get(1);
    return true;
  } catch {
    return false; // built without FTS5, or from the time before it knew numbered parameters, such as Node 22.16
  } finally {
    probe.close();
  }
}
