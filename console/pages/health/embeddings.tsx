import { Failure } from "../../parts/failure.tsx";
import { formatCount, projectName } from "../../parts/format.ts";
import { project } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";

/** How much of the records semantic search covers, and with which model. Keyword search covers the rest. */
export function Embeddings() {
  const selected = project.value;
  const { data, error, reload } = useCall(
    "stats",
    { limit: 100, ...(selected !== undefined && { of_project: selected }) },
    ({ kind }) => kind === "checkpoint" || kind === "knowledge",
  );
  return (
    <section aria-label="Embeddings">
      <h2>Embeddings</h2>
      {error && <Failure error={error} retry={reload} />}
      {data && (
        <div class="table" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                <th scope="col">Project</th>
                <th scope="col">Model</th>
                <th scope="col" class="number">
                  Records
                </th>
                <th scope="col" class="number">
                  Vectors
                </th>
                <th scope="col" class="number">
                  Backlog
                </th>
              </tr>
            </thead>
            <tbody>
              {data.projects.map(({ project_path, model, checkpoints, knowledge, vectors, vectors_missing }) => (
                <tr key={project_path}>
                  <td title={project_path} dir="auto">
                    {projectName(project_path)}
                  </td>
                  <td class="soft">{model ?? "keyword search only"}</td>
                  <td class="number">{formatCount(checkpoints + knowledge)}</td>
                  <td class="number">{formatCount(vectors)}</td>
                  <td class="number">{vectors_missing > 0 ? <span class="badge warn">{formatCount(vectors_missing)}</span> : 0}</td>
                </tr>
              ))}
              {data.shared && (
                <tr>
                  <td>shared knowledge</td>
                  <td class="soft">{data.shared.model ?? "keyword search only"}</td>
                  <td class="number">{formatCount(data.shared.knowledge)}</td>
                  <td class="number">{formatCount(data.shared.vectors)}</td>
                  <td class="number">{formatCount(data.shared.vectors_missing)}</td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
