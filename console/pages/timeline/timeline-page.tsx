import { useEffect, useMemo } from "preact/hooks";
import { emit, onEvent } from "../../api/events.ts";
import { Empty } from "../../parts/empty.tsx";
import { FeedList } from "../../parts/feed-list.tsx";
import { dayOf, formatDay, projectName } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { feed } from "../../state/feed.ts";
import { hrefOf, hrefWith, param, project } from "../../state/route.ts";
import { CheckpointCard } from "./checkpoint-card.tsx";
import { type Checkpoint, type TimelineFilter, timelinePages } from "./checkpoint-feed.ts";
import { CompareBar } from "./compare.tsx";
import { DayBars } from "./day-bars.tsx";
import { DeletedCheckpoints } from "./deleted-checkpoints.tsx";
import { readChanged } from "./read-changed.ts";
import { SingleCheckpoint } from "./single-checkpoint.tsx";
import { currentFilter, TimelineFilters } from "./timeline-filters.tsx";

/** Checkpoints by day, of all projects or of one, live. */
export default function TimelinePage() {
  const selected = project.value;
  const isDeleted = param("deleted") !== undefined;
  return (
    <>
      <div class="page-head">
        <h1>{isDeleted ? "Deleted checkpoints" : "Timeline"}</h1>
        <span class="soft">{selected === undefined ? "all projects" : projectName(selected)}</span>
        <span class="end">
          {isDeleted ? (
            <a href={hrefWith({ deleted: undefined })}>
              <Icon name="back" />
              Timeline
            </a>
          ) : (
            <a href={hrefOf("timeline", { deleted: "1" })}>Deleted</a>
          )}
        </span>
      </div>
      {isDeleted ? <DeletedCheckpoints /> : <Checkpoints />}
    </>
  );
}

/** The list with its chart and filters. */
function Checkpoints() {
  const selected = project.value;
  const filter = currentFilter();
  const key = JSON.stringify([selected, filter]);
  const [list, controller] = useMemo(() => {
    const controller = new AbortController();
    const next = timelinePages(selected, filter);
    return [
      feed(next, { keyOf: ({ id }: Checkpoint) => id, orderOf: ({ created_at }) => created_at, signal: controller.signal }),
      controller,
    ] as const;
  }, [key]);
  useEffect(() => () => controller.abort(), [controller]);
  useEffect(
    () =>
      onEvent(async (event) => {
        if (event.kind !== "checkpoint" || event.project === undefined) return;
        if (selected !== undefined && event.project !== selected) return;
        if ((event.action === "deleted" || event.action === "purged") && event.id !== undefined) return list.remove(event.id);
        for (const checkpoint of await readChanged(event.project, event.id)) if (fits(checkpoint, filter)) list.put(checkpoint);
      }),
    [list],
  );
  return (
    <>
      <DayBars />
      <TimelineFilters />
      <SingleCheckpoint />
      <FeedList
        feed={list}
        label="Checkpoints"
        draw={(item, previous) => <Row key={item.id} item={item} previous={previous} showProject={selected === undefined} />}
        empty={
          <Empty
            text="Checkpoints that agents save appear here, by day. None fits now."
            command={'cairn save "Parser done, lexer next" --tags parser'}
          />
        }
      />
      <CompareBar />
    </>
  );
}

interface RowProps {
  readonly item: Checkpoint;
  readonly previous: Checkpoint | undefined;
  readonly showProject: boolean;
}

function Row({ item, previous, showProject }: RowProps) {
  const day = dayOf(item.created_at);
  return (
    <>
      {(previous === undefined || dayOf(previous.created_at) !== day) && <h2 class="day">{formatDay(day)}</h2>}
      <CheckpointCard
        checkpoint={item}
        showProject={showProject}
        onChange={(action) => emit({ kind: "checkpoint", action, project: item.project_path, id: item.id })}
      />
    </>
  );
}

/** Whether a record that arrived as an event belongs to the list. Only the store can decide a filter by text. */
function fits({ tags, created_at, context }: Checkpoint, filter: TimelineFilter): boolean {
  const own = tags.map((tag) => tag.toLowerCase());
  if (filter.text !== undefined) return false;
  if (filter.tags?.some((tag) => !own.includes(tag.toLowerCase()))) return false;
  if (Object.entries(filter.context ?? {}).some(([name, value]) => context[name] !== value)) return false;
  return (filter.created_from ?? "") <= created_at && created_at < (filter.created_before ?? "9999");
}
