import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Script } from "node:vm";
import { type CodeCache, codeCacheFolder, openCodeCache } from "./code-cache.ts";

/** Smaller files compile faster than their code is read and checked. */
const CACHED_FROM_CHARS = 32_768;

type Run = (...values: readonly unknown[]) => void;

/** Loads a file of the bundle and the files it requires. Large files take their compiled code from the code cache, because Node 20 has no cache of its own. */
export function loadBundle(entry: string): unknown {
  const loaded = new Map<string, { exports: unknown }>();
  let cache: CodeCache | undefined;
  const load = (file: string): unknown => {
    const known = loaded.get(file);
    if (known) return known.exports;
    const own = { exports: {} };
    loaded.set(file, own);
    const source = readFileSync(file, "latin1"); // the build writes ASCII, which is read fastest so
    if (source.length >= CACHED_FROM_CHARS) cache ??= openCodeCache(process.env);
    const requireFrom = (id: string) => (id.startsWith("./") ? load(join(dirname(file), id)) : requireOutside(file, id));
    compile(file, source, cache)(own.exports, requireFrom, own, file, dirname(file), importModule);
    return own.exports;
  };
  return load(entry);
}

/** Compiles a file, which the build wrapped in a function. */
function compile(file: string, source: string, cache: CodeCache | undefined): Run {
  if (!cache || source.length < CACHED_FROM_CHARS) return new Script(source, { filename: file }).runInThisContext();
  const name = basename(file);
  const cachedData = cache.read(name);
  const script = new Script(source, { filename: file, ...(cachedData && { cachedData }) });
  if (!cachedData || script.cachedDataRejected) cache.writeAtExit(name, () => script.createCachedData());
  return script.runInThisContext();
}

/** Loads a module of Node, or else a package. Node's `require` takes longer, and its `node:module` loads the loader of ES modules. */
function requireOutside(file: string, id: string): unknown {
  return process.getBuiltinModule(id) ?? process.getBuiltinModule("node:module").createRequire(file)(id);
}

/** Imports what is outside the bundle. Code from the cache has no `import()` of its own. */
function importModule(specifier: string): Promise<unknown> {
  return import(specifier);
}

/** Lets Node 22.8 and newer keep the compiled code of packages. Its default folder is shared by all users of the machine. */
export function cacheModules(): void {
  if (process.versions.node.startsWith("20.")) return;
  const { enableCompileCache } = process.getBuiltinModule("node:module") as { enableCompileCache?: (folder: string) => unknown };
  const folder = enableCompileCache && codeCacheFolder(process.env);
  if (folder !== undefined) enableCompileCache!(folder);
}
