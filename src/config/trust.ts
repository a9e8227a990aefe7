import { realpathSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readOwnFile } from "../files/own-file.ts";
import { once } from "../model/once.ts";
import type { Problem } from "./given.ts";

/** A project file that the user has trusted: the real path of its folder, and the content that was trusted. */
const TrustFile = once(() =>
  z.strictObject({
    version: z.literal(1),
    folders: z.array(
      z.strictObject({
        path: z.string(),
        /** Of `cairn.config.json` as it was: a file that changed has to be trusted again. */
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
        trusted_at: z.iso.datetime(),
      }),
    ),
  }),
);
export type TrustedFolder = z.output<ReturnType<typeof TrustFile>>["folders"][number];

/** Bytes of the list: some thousand folders. */
const TRUST_BYTES = 4 * 1024 * 1024;

/** The list is in the home directory, whatever data_dir says: a trusted file may set data_dir. */
export const trustFile = (home: string): string => join(home, ".cairn", "trusted.json");

/** The folders whose project file the user has trusted. A list that cannot be used, or that others can write, is a problem and trusts nothing. */
export function readTrusted(home: string, problems: Problem[]): readonly TrustedFolder[] {
  const path = trustFile(home);
  try {
    return TrustFile().parse(JSON.parse(readOwnFile(path, TRUST_BYTES).toString("utf8"))).folders;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    const reason = error instanceof z.ZodError || error instanceof SyntaxError ? "it is not a list of folders" : (error as Error).message;
    problems.push({ where: path, key: "", problem: `cannot be used, so no folder is trusted: ${reason}` });
    return [];
  }
}

export function trustText(folders: readonly TrustedFolder[]): string {
  return `${JSON.stringify({ version: 1, folders }, null, 2)}\n`;
}

/** Whether the user has trusted the project file of this folder with exactly this content. */
export function isTrusted(home: string, folder: string, sha256: string, problems: Problem[]): boolean {
  const trusted = readTrusted(home, problems);
  if (trusted.length === 0) return false;
  const path = realpathSync(folder);
  return trusted.some((one) => one.path === path && one.sha256 === sha256);
}
