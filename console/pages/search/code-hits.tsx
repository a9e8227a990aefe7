import { CodeBlock } from "../../parts/code-block.tsx";
import { Empty } from "../../parts/empty.tsx";
import { shellWord } from "../../parts/format.ts";
import { hrefOf, project } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { HitList } from "./hit-list.tsx";
import { searchMode, TOP_K } from "./search-input.ts";

export function CodeHits({ query }: { readonly query: string }) {
  const selected = project.value;
  const loaded = useCall(
    "code_search",
    selected === undefined ? undefined : { project_path: selected, query, top_k: TOP_K, ...searchMode() },
  );
  if (selected === undefined) return <Empty text="Code belongs to a project. Choose one on the left." />;
  return (
    <HitList
      loaded={loaded}
      empty={{ text: "No code is indexed in this project.", command: `cairn code index --project ${shellWord(selected)} --wait` }}
      draw={({ results }) =>
        results.map(({ path, start_line, end_line, text, text_start_line, symbol, kind, found, stale }) => (
          <article key={`${path}:${start_line}`} class="hit-card">
            <h3>
              <a data-row href={hrefOf("code", { file: path, line: String(start_line), end: String(end_line) })}>
                {path}:{start_line}
              </a>
            </h3>
            <div class="facts">
              <span>
                {kind} {symbol}
              </span>
              {found.definition && <span class="badge good">definition</span>}
              {found.keyword !== undefined && <span>keyword rank {found.keyword}</span>}
              {found.semantic !== undefined && <span>semantic rank {found.semantic}</span>}
              {stale && <span class="badge warn">changed since indexing</span>}
            </div>
            <CodeBlock text={text} firstLine={text_start_line} query={query} />
          </article>
        ))
      }
    />
  );
}
