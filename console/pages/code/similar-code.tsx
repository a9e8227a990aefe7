import { CodeBlock } from "../../parts/code-block.tsx";
import { Failure } from "../../parts/failure.tsx";
import { hrefWith } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";

interface SimilarCodeProps {
  readonly project: string;
  readonly path: string;
  readonly line: number;
}

/** Code that does something similar. */
export function SimilarCode({ project, path, line }: SimilarCodeProps) {
  const { data, error, reload } = useCall("code_similar", { project_path: project, path, line, top_k: 5 });
  return (
    <section aria-label="Similar code">
      <h2>Similar code</h2>
      {error && <Failure error={error} retry={reload} />}
      {data?.results.length === 0 && <p class="soft">{data.note ?? "Nothing similar is indexed."}</p>}
      {data?.results.map((hit) => (
        <article key={`${hit.path}:${hit.start_line}`} class="hit-card">
          <h3>
            <a href={hrefWith({ file: hit.path, line: String(hit.start_line), end: String(hit.end_line) })}>
              {hit.path}:{hit.start_line}
            </a>
          </h3>
          <CodeBlock text={hit.text} firstLine={hit.text_start_line} />
        </article>
      ))}
    </section>
  );
}
