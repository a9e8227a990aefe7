import { Empty } from "../../parts/empty.tsx";
import { projectName } from "../../parts/format.ts";
import { param, project } from "../../state/route.ts";
import { CodeIndex } from "./code-index.tsx";
import { CodeSearch } from "./code-search.tsx";
import { FileView } from "./file-view.tsx";

/** The code index of a project: what is in it, what was skipped, and a search with a code view. */
export default function CodePage() {
  const selected = project.value;
  const file = param("file");
  return (
    <>
      <div class="page-head">
        <h1>Code</h1>
        {selected !== undefined && <span class="soft">{projectName(selected)}</span>}
      </div>
      {selected === undefined ? (
        <Empty text="Code belongs to a project. Choose one on the left." command="cairn code index --wait" />
      ) : (
        <>
          <CodeSearch project={selected} />
          {file !== undefined && <FileView key={file} project={selected} path={file} />}
          {param("q") === undefined && file === undefined && <CodeIndex project={selected} />}
        </>
      )}
    </>
  );
}
