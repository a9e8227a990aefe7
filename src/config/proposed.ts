import { dirname } from "node:path";
import { CairnError } from "../model/errors.ts";
import { readConfigFile } from "./file.ts";
import { fromObject, type Problem } from "./given.ts";
import { settingByKey } from "./settings.ts";
import { maskValue } from "./show.ts";

/** What a project file would set if it were trusted. */
export interface Proposal {
  readonly sha256: string;
  /** Only keys that need trust; secrets are masked. */
  readonly settings: readonly { readonly key: string; readonly value: string }[];
}

/** Reads a project file as if it were trusted. A mistake in it is an error, because nobody should trust what will not work. */
export function proposedSettings(path: string, home: string): Proposal {
  const problems: Problem[] = [];
  const file = readConfigFile(path, problems);
  const given = file && fromObject(file.content, { source: "project file", name: path }, { home, folder: dirname(path) }, problems);
  const [problem] = problems;
  if (problem)
    throw new CairnError("invalid_input", `${path} cannot be trusted: ${problem.key ? `${problem.key} ` : ""}${problem.problem}`);
  if (!file || !given) throw new CairnError("not_found", `There is no ${path}, so there is nothing to trust.`);
  const settings = [...given].flatMap(([key, { value }]) => {
    const setting = settingByKey.get(key)!;
    return setting.fromProject ? [] : [{ key, value: JSON.stringify(maskValue(setting, value)) }];
  });
  return { sha256: file.sha256, settings };
}
