import { fileURLToPath } from "node:url";

/**
 * The path of a file that the build made, given relative to dist/. The same whether this module runs from dist/ or, in
 * tests, from src/: entry points of other threads and processes must be JavaScript, and models exist only in dist/.
 */
export function builtFile(path: string): string {
  const dist = import.meta.url.endsWith(".ts") ? "../../dist/" : "../";
  return fileURLToPath(new URL(dist + path, import.meta.url));
}
