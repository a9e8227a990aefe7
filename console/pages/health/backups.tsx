import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { Command } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatBytes, formatPlural } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";

/** Backups of the files of Cairn. A PostgreSQL server has its own. */
export function Backups({ isServer }: { readonly isServer: boolean }) {
  return (
    <section aria-label="Backups">
      <h2>Backups</h2>
      {isServer ? (
        <>
          <p class="soft">The databases are in PostgreSQL. Back them up with its own tools:</p>
          <Command text="pg_dump --format=custom" />
        </>
      ) : (
        <FileBackups />
      )}
    </section>
  );
}

/** Backups, newest first. A backup is complete and verified when the call returns. */
function FileBackups() {
  const { data, error, reload } = useCall("backup_list", { limit: 10 });
  const [isBusy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    if (await attempt(() => call("backup", { all: true }))) {
      notify("Backup made.");
      reload();
    }
    setBusy(false);
  };
  return (
    <>
      {error && <Failure error={error} retry={reload} />}
      {data?.backups.length === 0 && (
        <>
          <p class="soft">No backups yet. This command makes one; cron can run it:</p>
          <Command text="cairn backup --all" />
        </>
      )}
      <ul class="list">
        {data?.backups.map(({ id, created_at, bytes, databases, failed, location }) => (
          <li key={id}>
            <div class="grow" title={location}>
              <b>
                <Time at={created_at} />
              </b>{" "}
              <span class="soft">
                {formatPlural(databases.length, "database")}, {formatBytes(bytes)}
              </span>
              {failed.length > 0 && <span class="badge bad">{formatPlural(failed.length, "failure")}</span>}
            </div>
          </li>
        ))}
      </ul>
      <p class="gap-small">
        <button type="button" disabled={isBusy} onClick={make}>
          {isBusy ? "Backing up…" : "Back up everything"}
        </button>
      </p>
    </>
  );
}
