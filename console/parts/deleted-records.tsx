import { attempt, notify } from "../state/toasts.ts";
import { confirm } from "./confirm.tsx";
import { Failure } from "./failure.tsx";
import { formatPlural } from "./format.ts";
import { Time } from "./time.tsx";

export interface DeletedRow {
  readonly id: string;
  readonly title: string;
  readonly deletedAt: string;
}

interface DeletedRecordsProps {
  readonly rows: readonly DeletedRow[] | undefined;
  readonly total: number | undefined;
  readonly error: Error | undefined;
  readonly reload: () => void;
  /** Absent if the caller may only read. */
  readonly restore?: ((id: string) => Promise<unknown>) | undefined;
  readonly purge?: ((id: string) => Promise<unknown>) | undefined;
}

/** Deleted records, the latest deletion first, each of which can be restored or erased. */
export function DeletedRecords({ rows, total, error, reload, restore, purge }: DeletedRecordsProps) {
  const bringBack = async (id: string) => {
    if (await attempt(async () => restore!(id))) notify("Record restored.");
    reload();
  };
  const erase = async ({ id, title }: DeletedRow) => {
    const text = `«${title.slice(0, 120)}» is erased at once, also from the files on disk. This cannot be undone.`;
    if (!(await confirm("Erase this record?", text, "Erase"))) return;
    if (await attempt(async () => purge!(id))) notify("Record erased for good.");
    reload();
  };
  return (
    <section aria-label="Deleted">
      {error && <Failure error={error} retry={reload} />}
      {rows?.length === 0 && (
        <p class="soft">Nothing is deleted here. Deleted records stay 30 days, unless retention.deleted_days says otherwise.</p>
      )}
      <ul class="list">
        {rows?.map((row) => (
          <li key={row.id}>
            <div class="grow">
              <span dir="auto">{row.title}</span>
              <br />
              <span class="soft">
                deleted <Time at={row.deletedAt} />
              </span>
            </div>
            {restore && (
              <button type="button" onClick={() => bringBack(row.id)}>
                Restore
              </button>
            )}
            {purge && (
              <button type="button" class="danger" onClick={() => erase(row)}>
                Erase
              </button>
            )}
          </li>
        ))}
      </ul>
      {rows && total !== undefined && rows.length < total && <p class="soft">The latest of {formatPlural(total, "deleted record")}.</p>}
    </section>
  );
}
