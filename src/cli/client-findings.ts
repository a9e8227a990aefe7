import { join } from "node:path";
import { permissionFindings } from "../admin/findings.ts";
import { type LoadedConfig, PROJECT_FILE, USER_FILE } from "../config/load.ts";
import { ignoredLines } from "../config/show.ts";
import { trustFile } from "../config/trust.ts";
import { exposureOf } from "../files/permissions.ts";
import type { Finding } from "../model/doctor.ts";
import { shellWord } from "../text/shell-word.ts";
import type { Call } from "./command.ts";

/** What the doctor reports about the configuration of this side: files that others can change, and a project file that is not trusted. */
export function clientFindings(config: LoadedConfig, { host, project }: Pick<Call, "host" | "project">): Finding[] {
  const own = [join(host.home, ".cairn"), join(host.home, USER_FILE), trustFile(host.home)];
  return [...permissionFindings(own.flatMap((path) => exposureOf(path) ?? [])), ...ignoredFindings(config, project().tree)];
}

/** A note: a repository from elsewhere must not make the report unhealthy. */
function ignoredFindings(config: LoadedConfig, tree: string): Finding[] {
  const lines = ignoredLines(config);
  if (lines.length === 0) return [];
  const message = `It is not trusted, so this is ignored: ${lines.join("; ")}.`;
  return [
    { check: "configuration", severity: "note", subject: join(tree, PROJECT_FILE), message, command: `cairn trust ${shellWord(tree)}` },
  ];
}
