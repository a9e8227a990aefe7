import type { DatabaseName } from "../model/backup.ts";
import { shellWord } from "./shell-word.ts";

/** Returns the command-line flags that select a database, quoted for a shell. */
export function databaseFlags({ kind, id }: DatabaseName): string {
  if (kind === "runs") return "--runs";
  return kind === "shared" ? "--scope shared" : `--${kind} ${shellWord(id)}`;
}
