import { useEffect, useMemo, useState } from "preact/hooks";
import { call, type Output } from "../../api/call.ts";
import { Command, Empty } from "../../parts/empty.tsx";
import { FeedList } from "../../parts/feed-list.tsx";
import { projectName, shellWord } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { feed, type NextPage } from "../../state/feed.ts";
import { hrefOf, hrefWith, param, project } from "../../state/route.ts";
import { followRuns } from "./follow-runs.ts";
import { RunStatus } from "./run-status.tsx";

const STATUSES = ["running", "paused", "queued", "answered", "failed", "completed", "cancelled"] as const;
const PAGE = 50;

type Run = Output<"run_list">["runs"][number];
interface RunFilter {
  readonly status?: Run["status"];
  readonly project?: string;
}

/** Runs by status, the latest change first. */
export function RunList() {
  const status = param("status");
  const selected = project.value;
  const filter: RunFilter = { ...(status && { status: status as Run["status"] }), ...(selected && { project: selected }) };
  const [version, setVersion] = useState(0);
  const [list, controller] = useMemo(() => {
    const controller = new AbortController();
    return [
      feed(runPages(filter), {
        keyOf: ({ run_id }: Run) => run_id,
        orderOf: ({ updated_at }) => updated_at,
        signal: controller.signal,
      }),
      controller,
    ] as const;
  }, [status, selected, version]);
  useEffect(() => () => controller.abort(), [controller]);
  useEffect(() => {
    const newest = async (narrow: object, limit: number, signal: AbortSignal) =>
      (await call("run_list", { ...narrow, limit }, signal)).runs;
    return followRuns(list, { filter, newest, reload: () => setVersion((count) => count + 1) });
  }, [list]);
  return (
    <>
      <div class="page-head">
        <h1>Runs</h1>
        <span class="soft">{selected === undefined ? "all projects" : projectName(selected)}</span>
      </div>
      <nav class="filters" aria-label="Status">
        <span class="tabs">
          {[undefined, ...STATUSES].map((name) => (
            <a key={name ?? "all"} href={hrefWith({ status: name })} aria-current={status === name ? "true" : undefined}>
              {name ?? "all"}
            </a>
          ))}
        </span>
      </nav>
      <FeedList
        feed={list}
        label="Runs"
        draw={(run) => <RunRow key={run.run_id} run={run} />}
        empty={
          selected !== undefined ? (
            <div class="empty">
              <p>
                No runs of this project. Runs that were started without a project are under{" "}
                <a href={hrefWith({ project: undefined })}>all projects</a>. This command queues a run of a graph that a worker has:
              </p>
              <Command text={`cairn run enqueue order '{"items": 10}' --project ${shellWord(selected)}`} />
            </div>
          ) : (
            <Empty
              text="Durable runs appear here: graphs of steps that survive a crash. docs/runs.md has one to copy."
              command="node order.mjs start order-1 10"
            />
          )
        }
      />
    </>
  );
}

function RunRow({ run: { run_id, graph, status, project: of, reason, last_sequence, updated_at } }: { readonly run: Run }) {
  return (
    <article class="run-row">
      <RunStatus status={status} />
      <a data-row href={hrefOf("runs", { run: run_id })}>
        {run_id}
      </a>
      <span class="soft">{graph}</span>
      <span class="soft">{of === undefined ? "" : projectName(of)}</span>
      <span class="soft number">{last_sequence} steps</span>
      <span class="soft number">
        <Time at={updated_at} />
      </span>
      {reason !== undefined && (
        <p class="problem" dir="auto">
          {reason}
        </p>
      )}
    </article>
  );
}

function runPages(filter: RunFilter): NextPage<Run> {
  let cursor: string | undefined;
  let isEnd = false;
  return async (signal) => {
    if (isEnd) return [];
    const page = await call("run_list", { ...filter, limit: PAGE, ...(cursor && { cursor }) }, signal);
    cursor = page.next_cursor;
    isEnd = cursor === undefined;
    return page.runs;
  };
}
