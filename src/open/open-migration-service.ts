import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { MigrationRules, Migrations } from "../migrate/service.ts";
import { CairnError } from "../model/errors.ts";
import { shellWord } from "../text/shell-word.ts";
import { type OpenContext, storageKind } from "./open-options.ts";
import { isImplicitStateDir } from "./open-system-storage.ts";

/** Opens migrations on demand: loading PostgreSQL costs only the processes that migrate. */
export function openMigrationService({ options, dataDir, stateDir, now }: OpenContext): Migrations & MigrationRules {
  const isImplicit = options.implicitStateDir ?? (options.stateDir === undefined && isImplicitStateDir());
  return {
    allowedHosts: options.migrate?.allowedHosts ?? [],
    async migrate(input) {
      if (isImplicit && touchesSystems(input.which, stateDir))
        throw new CairnError(
          "invalid_input",
          `Systems are migrated only from a folder that you chose, so that every process finds them afterwards. Set state_dir: CAIRN_STATE_DIR=${shellWord(stateDir)}`,
        );
      const kind = storageKind(options);
      if (kind === "own")
        throw new CairnError("conflict", "Only SQLite and PostgreSQL databases can be migrated, and this storage is neither.");
      if (kind === "memory") throw new CairnError("conflict", "Storage in memory cannot be migrated. Use SQLite or PostgreSQL.");
      const { openMigrations } = await import("./open-migrations.ts");
      return openMigrations({ dataDir, stateDir, now, ...(kind === "postgres" && { baseUrl: options.storage as string }) }).migrate(input);
    },
  };
}

function touchesSystems(which: "all" | { readonly kind: string }, stateDir: string): boolean {
  const folder = join(stateDir, "checkpoints");
  return which === "all" ? existsSync(folder) && readdirSync(folder).length > 0 : which.kind === "system";
}
