import { call } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { DeletedRecords } from "../../parts/deleted-records.tsx";
import { useCall } from "../../state/use-call.ts";
import type { Place } from "./use-knowledge.ts";

const LIMIT = 100;

/** The deleted knowledge of a place. */
export function DeletedKnowledge({ place }: { readonly place: Place }) {
  const { data, error, reload } = useCall("knowledge_list", { ...place, deleted: true, limit: LIMIT }, ({ kind }) => kind === "knowledge");
  return (
    <DeletedRecords
      rows={data?.knowledge.map(({ id, question, deleted_at }) => ({ id, title: question, deletedAt: deleted_at! }))}
      total={data?.total}
      error={error}
      reload={reload}
      restore={may("knowledge_restore") ? (id) => call("knowledge_restore", { ...place, id }) : undefined}
      purge={may("knowledge_purge") ? (id) => call("knowledge_purge", { ...place, id }) : undefined}
    />
  );
}
