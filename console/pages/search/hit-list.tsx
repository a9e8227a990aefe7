import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Empty } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import type { Loaded } from "../../state/use-call.ts";
import { useListKeys } from "../../state/use-list-keys.ts";
import { MatchNote } from "./match-note.tsx";

interface Answer {
  readonly match: "high" | "medium" | "low" | "none";
  readonly degraded: readonly string[];
  readonly results: readonly unknown[];
}

interface HitListProps<T extends Answer> {
  readonly loaded: Loaded<T>;
  readonly draw: (answer: T) => ComponentChildren;
  readonly empty: { readonly text: string; readonly command: string };
}

/** The hits of a search, with its state: loading, failed, empty, or how well they match. */
export function HitList<T extends Answer>({ loaded: { data, error, loading, reload }, draw, empty }: HitListProps<T>) {
  const list = useRef<HTMLDivElement>(null);
  useListKeys(list);
  if (error) return <Failure error={error} retry={reload} />;
  if (!data) return <p class="soft">{loading ? "Searching…" : ""}</p>;
  if (data.results.length === 0) return <Empty {...empty} />;
  return (
    <div ref={list} class="hits" aria-busy={loading}>
      <MatchNote match={data.match} degraded={data.degraded} />
      {draw(data)}
    </div>
  );
}
