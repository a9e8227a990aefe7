import { type Signal, signal } from "@preact/signals";

/** A long list that is loaded page by page, and that changes while it is shown. */
export interface Feed<T> {
  readonly pages: Signal<readonly (readonly T[])[]>;
  /** `end` when there is nothing more. */
  readonly state: Signal<"idle" | "loading" | "end" | Error>;
  /** Loads the next page. Calls while one is loading do nothing. */
  more(): Promise<void>;
  /** Puts a record to its place in the order, instead of the record with the same key. */
  put(item: T): void;
  remove(key: string): void;
}

/** Returns the next page, or an empty one at the end. */
export type NextPage<T> = (signal: AbortSignal) => Promise<readonly T[]>;

export interface FeedOptions<T> {
  readonly keyOf: (item: T) => string;
  /** What the list is ordered by, descending. */
  readonly orderOf: (item: T) => string;
  readonly signal: AbortSignal;
}

/** Makes a list of what `next` returns. */
export function feed<T>(next: NextPage<T>, { keyOf, orderOf, signal: aborting }: FeedOptions<T>): Feed<T> {
  const pages = signal<readonly (readonly T[])[]>([]);
  const state = signal<"idle" | "loading" | "end" | Error>("idle");
  const update = (change: (page: readonly T[]) => readonly T[]) => {
    pages.value = pages.value.map(change);
  };
  return {
    pages,
    state,
    async more() {
      if (state.value === "loading" || state.value === "end") return;
      state.value = "loading";
      try {
        const page = await next(aborting);
        if (aborting.aborted) return;
        const known = new Set(pages.value.flat().map(keyOf)); // a record that was put first can come again with its page
        if (page.length > 0) pages.value = [...pages.value, page.filter((item) => !known.has(keyOf(item)))];
        state.value = page.length > 0 ? "idle" : "end";
      } catch (error) {
        if (!aborting.aborted) state.value = error as Error;
      }
    },
    put(item) {
      const others = pages.value.map((page) => page.filter((other) => keyOf(other) !== keyOf(item)));
      const order = orderOf(item);
      const index = others.findIndex((page) => page.some((other) => orderOf(other) < order));
      if (index === -1) {
        // Older than everything that is loaded: it comes with its page, or is the last one.
        pages.value = state.value === "end" ? [...others, [item]] : others;
        return;
      }
      const at = others[index]!.findIndex((other) => orderOf(other) < order);
      pages.value = others.map((page, place) => (place === index ? page.toSpliced(at, 0, item) : page));
    },
    remove(key) {
      update((page) => page.filter((item) => keyOf(item) !== key));
    },
  };
}
