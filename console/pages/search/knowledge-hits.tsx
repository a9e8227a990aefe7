import { Marked } from "../../parts/marked.tsx";
import { hrefOf, project } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { HitList } from "./hit-list.tsx";
import { ScaleNote, ScoreBars } from "./score-bars.tsx";
import { searchMode, TOP_K } from "./search-input.ts";

export function KnowledgeHits({ query }: { readonly query: string }) {
  const selected = project.value;
  const scope = selected === undefined ? ({ scope: "shared" } as const) : { project_path: selected };
  const loaded = useCall("knowledge_search", { ...scope, query, top_k: TOP_K, ...searchMode() });
  return (
    <HitList
      loaded={loaded}
      empty={{
        text: "No knowledge here. Agents save answers that helped.",
        command: 'cairn knowledge save "How do we deploy?" "Run make deploy."',
      }}
      draw={({ results }) => {
        const bestKeyword = Math.max(0, ...results.map(({ found }) => found.keyword?.score ?? 0));
        const cards = results.map(({ knowledge, scope: from, found, confidence, warning }) => (
          <article key={from + knowledge.id} class="hit-card">
            <h3>
              <a data-row href={hrefOf("knowledge", { project: from === "shared" ? undefined : selected, id: knowledge.id })} dir="auto">
                <Marked text={knowledge.question} query={query} />
              </a>
            </h3>
            <p class="excerpt" dir="auto">
              <Marked text={knowledge.answer.slice(0, 400)} query={query} />
            </p>
            <div class="facts">
              <span>{knowledge.kind}</span>
              <span>{from}</span>
              <span>{confidence} confidence</span>
              {warning !== undefined && <span class="badge warn">{warning}</span>}
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
