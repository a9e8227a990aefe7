import { CairnError } from "../../../model/errors.ts";
import { migratingError } from "../../../model/migration.ts";
import { hasMigrationRecord } from "../migration/record.ts";

/** Reports a closed database. A database that is being migrated is closed by the first call that finds out, while others still wait. */
export function closedError(path: string): CairnError {
  return hasMigrationRecord(path)
    ? migratingError(path)
    : new CairnError("unavailable", `The database ${path} was closed. Open it again.`, { details: { path } });
}
