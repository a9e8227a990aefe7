import { useEffect, useState } from "preact/hooks";
import { Icon } from "../../parts/icon.tsx";
import { param, paramList, project, setParams } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import type { TimelineFilter } from "./checkpoint-feed.ts";

const TYPING_MS = 300;
/** Parameters of the address that narrow the timeline and are shown as chips. */
const CHIPS = ["tag", "branch", "session"];

/** Returns the filter of the address: tags, branch, session, text and days. */
export function currentFilter(): TimelineFilter {
  const tags = [...paramList("tag")];
  const from = param("from");
  const to = param("to");
  const text = param("text");
  const branch = param("branch");
  const session_id = param("session");
  const context = { ...(branch !== undefined && { branch }), ...(session_id !== undefined && { session_id }) };
  return {
    ...(tags.length > 0 && { tags }),
    ...(from !== undefined && { created_from: new Date(`${from}T00:00:00`).toISOString() }),
    ...(to !== undefined && { created_before: nextDay(to).toISOString() }),
    ...(Object.keys(context).length > 0 && { context }),
    ...(text !== undefined && { text }),
  };
}

/** Returns the start of the day after a day, which may be 23 or 25 hours later. */
function nextDay(day: string): Date {
  const date = new Date(`${day}T00:00:00`);
  date.setDate(date.getDate() + 1);
  return date;
}

/** Fields that narrow the timeline, and the filters that are set. */
export function TimelineFilters() {
  const set = CHIPS.flatMap((name) => paramList(name).map((value) => ({ name, value })));
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
      <TextFilter />
      <TagFilter />
      <label>
        From
        <input type="date" value={param("from") ?? ""} onChange={(event) => setParams({ from: event.currentTarget.value })} />
      </label>
      <label>
        To
        <input type="date" value={param("to") ?? ""} onChange={(event) => setParams({ to: event.currentTarget.value })} />
      </label>
      {set.map(({ name, value }) => (
        <button
          key={`${name}${value}`}
          type="button"
          class="chip"
          aria-label={`Remove filter ${name} ${value}`}
          onClick={() => setParams({ [name]: paramList(name).filter((other) => other !== value) })}
        >
          {name} <b dir="auto">{value}</b> <Icon name="close" />
        </button>
      ))}
      {(param("from") ?? param("to")) !== undefined && (
        <button type="button" class="chip" onClick={() => setParams({ from: undefined, to: undefined })}>
          All days <Icon name="close" />
        </button>
      )}
    </form>
  );
}

function TextFilter() {
  const current = param("text") ?? "";
  const [text, setText] = useState(current);
  useEffect(() => setText(current), [current]);
  useEffect(() => {
    if (text.trim() === current) return;
    const timer = setTimeout(() => setParams({ text: text.trim() }, { replace: true }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      type="search"
      aria-label="Filter by text"
      placeholder="Filter by text"
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}

/** The tags of the project with their counts. Tags are chosen one by one; a record must have all of them. */
function TagFilter() {
  const selected = project.value;
  const { data } = useCall(
    "checkpoint_tags",
    selected === undefined ? undefined : { project_path: selected, limit: 100 },
    ({ kind }) => kind === "checkpoint",
  );
  const chosen = paramList("tag");
  const others = data?.tags.filter(({ tag }) => !chosen.includes(tag)) ?? [];
  if (selected === undefined || others.length === 0) return null;
  return (
    <select aria-label="Filter by tag" value="" onChange={(event) => setParams({ tag: [...chosen, event.currentTarget.value] })}>
      <option value="">Tag</option>
      {others.map(({ tag, count }) => (
        <option key={tag} value={tag}>
          {tag} ({count})
        </option>
      ))}
    </select>
  );
}
