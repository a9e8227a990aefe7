import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { readConfigFile } from "../config/file.ts";
import type { Problem } from "../config/given.ts";
import { USER_FILE } from "../config/load.ts";
import { CairnError } from "../model/errors.ts";
import { withFileLock } from "../stores/file/lock.ts";
import { replaceFile } from "../stores/file/replace-file.ts";

type Fields = Record<string, unknown>;

/** Changes one key of the user file; `undefined` removes it. Returns the path of the file and whether the key was there before. */
export async function writeUserSetting(
  home: string,
  key: string,
  value: unknown,
): Promise<{ readonly path: string; readonly was: boolean }> {
  const path = join(home, USER_FILE);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return withFileLock(`${path}.lock`, async () => {
    const problems: Problem[] = [];
    const content = structuredClone(readConfigFile(path, problems)?.content ?? {}) as Fields;
    const [problem] = problems;
    if (problem) throw new CairnError("conflict", `${path} ${problem.problem}. It was not changed. Repair it, then try again.`);
    const was = setKey(content, key.split("."), value);
    await replaceFile(path, `${JSON.stringify(content, null, 2)}\n`);
    return { path, was };
  });
}

/** Sets or removes a nested key and removes groups that become empty. Returns whether the key existed. */
export function setKey(content: Fields, [name, ...rest]: readonly string[], value: unknown): boolean {
  const existed = Object.hasOwn(content, name!);
  if (rest.length === 0) {
    if (value === undefined) delete content[name!];
    else content[name!] = value;
    return existed;
  }
  const inner = content[name!];
  const group = typeof inner === "object" && inner !== null && !Array.isArray(inner) ? (inner as Fields) : {};
  const was = setKey(group, rest, value);
  if (Object.keys(group).length > 0) content[name!] = group;
  else delete content[name!];
  return existed && was;
}
