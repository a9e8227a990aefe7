import { useEffect, useState } from "preact/hooks";
import { param, setParams } from "../../state/route.ts";
import { CodeHits } from "../search/code-hits.tsx";

const TYPING_MS = 300;

/** A search field over the code; its hits open in the code view. */
export function CodeSearch({ project }: { readonly project: string }) {
  const query = param("q") ?? "";
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]);
  useEffect(() => {
    if (text.trim() === query) return;
    const timer = setTimeout(
      () => setParams({ q: text.trim(), file: undefined, line: undefined, end: undefined }, { replace: true }),
      TYPING_MS,
    );
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <>
      <form class="search-form" role="search" onSubmit={(event) => event.preventDefault()}>
        <input
          type="search"
          aria-label="Search code"
          placeholder="Search by what the code does, or by a name"
          maxLength={1000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </form>
      {query !== "" && param("file") === undefined && <CodeHits key={project} query={query} />}
    </>
  );
}
