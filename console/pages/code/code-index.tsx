import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { Command, Empty } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatBytes, formatCount, formatPlural, shellWord } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";
import { FileList } from "./file-list.tsx";
import { canIndex, IndexButton } from "./index-button.tsx";
import { IndexJobs } from "./index-jobs.tsx";
import { TreeMap } from "./tree-map.tsx";

/** What the index of a project holds. A server reads files for its own user only; everybody else gets the command to copy. */
export function CodeIndex({ project }: { readonly project: string }) {
  const { data, error, reload } = useCall(
    "code_stats",
    { project_path: project },
    (event) => event.kind === "code" && (event.project ?? project) === project,
  );
  const jobs = useCall("code_jobs", { project_path: project }, ({ kind, project: of }) => kind === "code" && (of ?? project) === project);
  const [isBusy, setBusy] = useState(false);
  const command = `cairn code index --project ${shellWord(project)} --wait`;
  const reembed = async () => {
    setBusy(true);
    if (await attempt(() => call("code_reembed", { project_path: project, wait: false }))) {
      notify("Re-embedding started. It runs in the background.");
      reload();
    }
    setBusy(false);
  };
  if (error) return <Failure error={error} retry={reload} />;
  if (!data) return null;
  const reported = jobs.data?.jobs ?? [];
  const list = <IndexJobs project={project} jobs={reported} reload={jobs.reload} />;
  const button = <IndexButton project={project} jobs={reported} isFirst={data.files === 0} onStart={jobs.reload} />;
  if (data.files === 0)
    return (
      <>
        <Empty
          text={`No code is indexed in this project. ${canIndex(project, true) ? "This command, or the button, reads" : "This command reads"} its files:`}
          command={command}
        >
          {button}
        </Empty>
        {reported.length > 0 && list}
      </>
    );
  return (
    <>
      <p class="facts figures">
        <span>{formatPlural(data.files, "file")}</span>
        <span>{formatPlural(data.chunks, "chunk")}</span>
        <span>{formatPlural(data.definitions, "definition")}</span>
        <span>{formatBytes(data.bytes)}</span>
        {data.last_indexed_at !== undefined && (
          <span>
            indexed <Time at={data.last_indexed_at} />
          </span>
        )}
        {data.embeddings
          .filter(({ is_current }) => is_current)
          .map(({ model, vectors }) => (
            <span key={model}>
              {model}: {formatCount(vectors)} vectors
            </span>
          ))}
      </p>
      <section aria-label="Actions">
        <h2>Update the index</h2>
        <p class="soft">
          {canIndex(project, false) ? "The button and this command read changed files only." : "This command reads changed files only."}
        </p>
        <div class="row-actions">
          {button}
          <Command text={command} />
          {may("code_reembed") && (
            <button type="button" disabled={isBusy} onClick={reembed}>
              Re-embed
            </button>
          )}
        </div>
      </section>
      <TreeMap project={project} version={data.last_indexed_at} />
      {list}
      <FileList project={project} version={data.last_indexed_at} />
    </>
  );
}
