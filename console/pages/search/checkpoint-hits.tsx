import type { Output } from "../../api/call.ts";
import { projectName } from "../../parts/format.ts";
import { Marked } from "../../parts/marked.tsx";
import { Time } from "../../parts/time.tsx";
import { hrefOf, project } from "../../state/route.ts";
import { type Loaded, useCall } from "../../state/use-call.ts";
import { HitList } from "./hit-list.tsx";
import { ScaleNote, ScoreBars } from "./score-bars.tsx";
import { searchMode, TOP_K } from "./search-input.ts";

type Answer = Output<"checkpoint_search_all">;

export function CheckpointHits({ query }: { readonly query: string }) {
  const selected = project.value;
  const input = { query, top_k: TOP_K, ...searchMode() };
  const all = useCall("checkpoint_search_all", selected === undefined ? input : undefined);
  const one = useCall("checkpoint_search", selected === undefined ? undefined : { project_path: selected, ...input });
  const loaded = selected === undefined ? all : (one as unknown as Loaded<Answer>);
  return (
    <HitList
      loaded={loaded}
      empty={{ text: "No checkpoint here. Agents save them; you can too.", command: 'cairn save "Parser done, lexer next"' }}
      draw={({ results }) => {
        const bestKeyword = Math.max(0, ...results.map(({ found }) => found.keyword?.score ?? 0));
        const cards = results.map(({ checkpoint, found }) => (
          <article key={checkpoint.id} class="hit-card">
            <h3>
              <a data-row href={hrefOf("timeline", { project: checkpoint.project_path, id: checkpoint.id })} dir="auto">
                <Marked text={checkpoint.summary} query={query} />
              </a>
            </h3>
            {checkpoint.description !== "" && (
              <p class="excerpt" dir="auto">
                <Marked text={checkpoint.description.slice(0, 400)} query={query} />
              </p>
            )}
            <div class="facts">
              {selected === undefined && <span>{projectName(checkpoint.project_path)}</span>}
              <Time at={checkpoint.created_at} />
              {checkpoint.tags.map((tag) => (
                <span key={tag} class="tag" dir="auto">
                  {tag}
                </span>
              ))}
            </div>
            <ScoreBars found={found} bestKeyword={bestKeyword} />
          </article>
        ));
        return (
          <>
            <ScaleNote />
            {cards}
          </>
        );
      }}
    />
  );
}
