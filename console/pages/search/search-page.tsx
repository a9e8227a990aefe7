import { useEffect, useRef, useState } from "preact/hooks";
import { Empty } from "../../parts/empty.tsx";
import { param, project, setParams } from "../../state/route.ts";
import { AgentView } from "./agent-view.tsx";
import { CheckpointHits } from "./checkpoint-hits.tsx";
import { CodeHits } from "./code-hits.tsx";
import { KnowledgeHits } from "./knowledge-hits.tsx";

export const SCOPES = ["checkpoints", "knowledge", "code"] as const;
const MODES = ["hybrid", "semantic", "keyword"] as const;
const TYPING_MS = 300;

/** Search as agents have it, with the reason of each hit and the text that an agent would receive. */
export default function SearchPage() {
  const query = param("q") ?? "";
  const scope = param("in") ?? "checkpoints";
  return (
    <>
      <div class="page-head">
        <h1>Search</h1>
      </div>
      <SearchForm query={query} scope={scope} />
      {query === "" ? (
        <Empty
          text="Hits appear here, each with the reason why it was found."
          command={'cairn search "wrong sums in the shopping basket"'}
        />
      ) : (
        <div class="split">
          <section aria-label="Hits">
            <h2 class="visually-hidden">Hits</h2>
            {scope === "knowledge" ? (
              <KnowledgeHits query={query} />
            ) : scope === "code" ? (
              <CodeHits query={query} />
            ) : (
              <CheckpointHits query={query} />
            )}
          </section>
          <AgentView query={query} scope={scope} />
        </div>
      )}
    </>
  );
}

function SearchForm({ query, scope }: { readonly query: string; readonly scope: string }) {
  const [text, setText] = useState(query);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(query), [query]);
  useEffect(() => input.current!.focus(), []);
  useEffect(() => {
    if (text.trim() === query) return;
    const timer = setTimeout(() => setParams({ q: text.trim() }, { replace: true }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const submit = (event: Event) => {
    event.preventDefault();
    setParams({ q: text.trim() });
  };
  return (
    <form class="search-form" role="search" onSubmit={submit}>
      <input
        ref={input}
        type="search"
        aria-label="Question"
        placeholder="Ask in your own words"
        maxLength={1000}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <fieldset class="tabs">
        <legend class="visually-hidden">Search in</legend>
        {SCOPES.map((name) => (
          <label key={name}>
            <input
              type="radio"
              name="in"
              checked={scope === name}
              onChange={() => setParams({ in: name === "checkpoints" ? undefined : name })}
            />
            {name}
          </label>
        ))}
      </fieldset>
      <label class="soft">
        Ranking{" "}
        <select
          value={param("mode") ?? "hybrid"}
          onChange={(event) => setParams({ mode: event.currentTarget.value === "hybrid" ? undefined : event.currentTarget.value })}
        >
          {MODES.map((mode) => (
            <option key={mode}>{mode}</option>
          ))}
        </select>
      </label>
      {project.value === undefined && <span class="soft">in all projects</span>}
    </form>
  );
}
