import { fileURLToPath } from "node:url";

/**
 * Returns the path of a built file, given relative to dist/. It is the same when this module runs from dist/ and, in tests, from src/:
 * entry points of threads and processes must be JavaScript, and models exist only in dist/.
 */
export function builtFile(path: string): string {
  const dist = import.meta.url.endsWith(".ts") ? "../../dist/" : "../";
  return fileURLToPath(new URL(dist + path, import.meta.url));
}
