import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Feed } from "../state/feed.ts";
import { useListKeys } from "../state/use-list-keys.ts";
import { Failure } from "./failure.tsx";

interface FeedListProps<T> {
  readonly feed: Feed<T>;
  readonly label: string;
  /** Draws a record; `previous` is the one above it, also on the page before. */
  readonly draw: (item: T, previous: T | undefined) => ComponentChildren;
  readonly empty: ComponentChildren;
}

/** Pixels above and below the screen in which pages stay drawn. */
const MARGIN = "1200px";

/** Shows a long list. Pages far from the screen are replaced by their height, so the document stays small. */
export function FeedList<T>({ feed, label, draw, empty }: FeedListProps<T>) {
  const list = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  useListKeys(list);
  const pages = feed.pages.value;
  const state = feed.state.value;
  useEffect(() => {
    if (pages.length === 0 && state === "idle") void feed.more();
    const observer = new IntersectionObserver(([entry]) => entry!.isIntersecting && feed.more(), { rootMargin: MARGIN });
    observer.observe(end.current!);
    return () => observer.disconnect();
  }, [feed, pages.length, state]);
  const isEmpty = state === "end" && pages.every((page) => page.length === 0);
  return (
    <section class="feed" ref={list} aria-label={label} aria-busy={state === "loading"}>
      {pages.map((page, index) => (
        <FeedPage key={index} page={page} before={pages[index - 1]?.at(-1)} draw={draw} />
      ))}
      {isEmpty && empty}
      {state instanceof Error && <Failure error={state} retry={() => void feed.more()} />}
      <div ref={end} class="feed-end">
        {state === "loading" && <span class="soft">Loading…</span>}
      </div>
    </section>
  );
}

interface FeedPageProps<T> {
  readonly page: readonly T[];
  readonly before: T | undefined;
  readonly draw: (item: T, previous: T | undefined) => ComponentChildren;
}

function FeedPage<T>({ page, before, draw }: FeedPageProps<T>) {
  const ref = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState<number>();
  useEffect(() => {
    const observer = new IntersectionObserver(
      ([entry]) => {
        const { isIntersecting, boundingClientRect, target } = entry!;
        const isFocused = target.contains(document.activeElement);
        setHeight(isIntersecting || isFocused ? undefined : boundingClientRect.height);
      },
      { rootMargin: MARGIN },
    );
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={ref} class="feed-page" style={height === undefined ? undefined : { height: `${height}px` }}>
      {height === undefined && page.map((item, index) => draw(item, index === 0 ? before : page[index - 1]))}
    </div>
  );
}
