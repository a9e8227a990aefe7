import { join } from "node:path";
import { permissionFindings } from "../admin/findings.ts";
import { type LoadedConfig, PROJECT_FILE, USER_FILE } from "../config/load.ts";
import { ignoredLines } from "../config/show.ts";
import { trustFile } from "../config/trust.ts";
import { exposureOf } from "../files/permissions.ts";
import type { Finding } from "../model/doctor.ts";
import { shellWord } from "../text/shell-word.ts";

/** Returns findings about the configuration of the client side: files that other users can change, and a project file that is not trusted. */
export function clientFindings(config: LoadedConfig, { home, tree }: { readonly home: string; readonly tree: string }): Finding[] {
  const own = [join(home, ".cairn"), join(home, USER_FILE), trustFile(home)];
  return [...permissionFindings(own.flatMap((path) => exposureOf(path) ?? [])), ...ignoredFindings(config, tree)];
}

/** The severity is `note`: a repository from elsewhere must not make the report unhealthy. */
function ignoredFindings(config: LoadedConfig, tree: string): Finding[] {
  const lines = ignoredLines(config);
  if (lines.length === 0) return [];
  const message = `It is not trusted, so this is ignored: ${lines.join("; ")}.`;
  return [
    { check: "configuration", severity: "note", subject: join(tree, PROJECT_FILE), message, command: `cairn trust ${shellWord(tree)}` },
  ];
}
