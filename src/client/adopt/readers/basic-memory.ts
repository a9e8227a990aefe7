import { realpath } from "node:fs/promises";
import { isAbsolute, join, sep } from "node:path";
import { gitDataFolder, identifyProject } from "../../../files/git-repository.ts";
import { listFiles } from "../list-files.ts";
import { markdownUnit } from "../markdown-notes.ts";
import { objectOf, readIndex, textOf } from "../read-file.ts";
import type { AdoptHost, AdoptReader, AdoptUnit, ProblemItem } from "../reader.ts";

const DEPTH = 8;

/** Reads the Markdown files of the projects in `config.json`. Without that file, reads `~/basic-memory`. */
export const basicMemoryReader: AdoptReader = {
  tool: "basic-memory",
  async find(host, signal) {
    const units: AdoptUnit[] = [];
    const problems: ProblemItem[] = [];
    for (const [name, folder] of await projectsOf(host)) {
      const real = await realpath(folder).catch(() => undefined);
      if (real === undefined) continue;
      if (containsHome(real, host.home)) {
        problems.push({ type: "problem", path: folder, problem: "contains a whole home directory, so it is not read" });
        continue;
      }
      const enters = (entry: string) => !entry.startsWith(".") && entry !== "node_modules";
      const files = await listFiles(real, { depth: DEPTH, accepts: (file) => /\.md$/i.test(file), enters }, signal);
      const place = { folder: repositoryOf(real, host.home), category: name };
      units.push(...files.map((file) => markdownUnit(file, place)));
    }
    return { units, problems };
  },
};

async function projectsOf({ home, env }: AdoptHost): Promise<[string, string][]> {
  const folder =
    env.BASIC_MEMORY_CONFIG_DIR || (env.XDG_CONFIG_HOME ? join(env.XDG_CONFIG_HOME, "basic-memory") : join(home, ".basic-memory"));
  const config = await readIndex(folder, "config.json");
  const listed = Object.entries(objectOf(config?.projects) ?? {}).flatMap(([name, entry]): [string, string][] => {
    const path = textOf(entry) ?? textOf(objectOf(entry)?.path);
    return path !== undefined && isAbsolute(path) ? [[name, path]] : [];
  });
  return listed.length > 0 ? listed : [["main", env.BASIC_MEMORY_HOME || join(home, "basic-memory")]];
}

/** Returns the repository that contains the notes. Notes outside of a repository belong to no project. */
function repositoryOf(folder: string, home: string): string | undefined {
  const { repository, tree } = identifyProject(folder, home);
  return gitDataFolder(tree) === undefined ? undefined : repository;
}

function containsHome(folder: string, home: string): boolean {
  return folder === home || home.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
