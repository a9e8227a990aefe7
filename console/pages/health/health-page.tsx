import { may, seesAll, session } from "../../api/session.ts";
import { Empty } from "../../parts/empty.tsx";
import { Embeddings } from "./embeddings.tsx";
import { Findings } from "./findings.tsx";
import { Keys } from "./keys.tsx";
import { RecentCalls } from "./recent-calls.tsx";

/** Whether everything is well: findings, databases, embeddings, backups, keys and calls. */
export default function HealthPage() {
  const isAllowed = seesAll() && may("doctor");
  return (
    <>
      <div class="page-head">
        <h1>Health</h1>
        <span class="soft">Cairn {session.value?.version}</span>
      </div>
      {isAllowed ? (
        <>
          <Findings />
          <Embeddings />
          <Keys />
          <RecentCalls />
        </>
      ) : (
        <>
          <Empty
            text="The doctor, backups and keys concern all projects. Sign in with an admin key for all projects to see them."
            command="cairn ui"
          />
          <Embeddings />
        </>
      )}
    </>
  );
}
