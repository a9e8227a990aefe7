import { useEffect, useState } from "preact/hooks";
import { call, type Input, MAX_TOKENS, type Output } from "../../api/call.ts";
import { onEvent } from "../../api/events.ts";

export type Knowledge = Output<"knowledge_list">["knowledge"][number];
export type Place = { readonly scope: "shared" } | { readonly project_path: string };

const PAGE = 100;
/** Records that are shown and ordered. More are found by search. */
const MAX = 1_000;
const SETTLE_MS = 250;

/** Loads the knowledge of a place, page by page, and again when it changes. */
export function useKnowledge(place: Place, kind: string | undefined, source: string | undefined) {
  const [state, setState] = useState<{ records?: readonly Knowledge[]; total?: number; error?: Error; loading: boolean }>({
    loading: true,
  });
  const [version, setVersion] = useState(0);
  const reload = () => setVersion((count) => count + 1);
  const key = JSON.stringify({ ...place, ...(kind !== undefined && { kind }), ...(source !== undefined && { source }) });
  useEffect(() => {
    const controller = new AbortController();
    setState((previous) => ({ ...previous, loading: true }));
    loadAll(JSON.parse(key), controller.signal).then(
      ({ records, total }) => controller.signal.aborted || setState({ records, total, loading: false }),
      (error: Error) => controller.signal.aborted || setState({ error, loading: false }),
    );
    return () => controller.abort();
  }, [key, version]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onEvent((event) => {
      if (event.kind !== "knowledge") return;
      timer ??= setTimeout(() => {
        timer = undefined;
        reload();
      }, SETTLE_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, []);
  return { ...state, reload };
}

async function loadAll(filter: Input<"knowledge_list">, signal: AbortSignal) {
  const records: Knowledge[] = [];
  let cursor: string | undefined;
  let total = 0;
  do {
    const page = await call("knowledge_list", { ...filter, limit: PAGE, max_tokens: MAX_TOKENS, ...(cursor && { cursor }) }, signal);
    records.push(...page.knowledge);
    total = page.total;
    cursor = page.next_cursor;
  } while (cursor !== undefined && records.length < MAX);
  return { records, total };
}
