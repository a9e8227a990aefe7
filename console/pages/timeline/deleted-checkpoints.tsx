import { call } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { DeletedRecords } from "../../parts/deleted-records.tsx";
import { Empty } from "../../parts/empty.tsx";
import { project } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";

const LIMIT = 100;

/** The deleted checkpoints of the selected project. */
export function DeletedCheckpoints() {
  const selected = project.value;
  const { data, error, reload } = useCall(
    "checkpoint_list",
    selected === undefined ? undefined : { project_path: selected, deleted: true, limit: LIMIT },
    (event) => event.kind === "checkpoint" && event.project === selected,
  );
  if (selected === undefined)
    return <Empty text="Deleted checkpoints are listed by project. Choose one on the left." command="cairn checkpoint list --deleted" />;
  const of = (id: string) => ({ project_path: selected, id });
  return (
    <DeletedRecords
      rows={data?.checkpoints.map(({ id, summary, deleted_at }) => ({ id, title: summary, deletedAt: deleted_at! }))}
      total={data?.total}
      error={error}
      reload={reload}
      restore={may("checkpoint_restore") ? (id) => call("checkpoint_restore", of(id)) : undefined}
      purge={may("checkpoint_purge") ? (id) => call("checkpoint_purge", of(id)) : undefined}
    />
  );
}
