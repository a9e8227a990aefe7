import { useEffect, useRef, useState } from "preact/hooks";
import { formatPlural, projectName } from "../parts/format.ts";
import { Icon } from "../parts/icon.tsx";
import { go, hrefOf, project } from "../state/route.ts";
import { type Found, findEverywhere } from "./find-everywhere.ts";

const TYPING_MS = 150;

/** Searches checkpoints, knowledge and code at once. Arrow keys choose, Enter opens. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<readonly Found[]>([]);
  const [chosen, setChosen] = useState(0);
  const [state, setState] = useState<"idle" | "busy" | "done">("idle");

  useEffect(() => ref.current!.showModal(), []);
  useEffect(() => {
    setChosen(0);
    if (query.trim() === "") {
      setState("idle");
      return setFound([]);
    }
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      setState("busy");
      const hits = await findEverywhere(query.trim(), project.value, controller.signal);
      if (controller.signal.aborted) return;
      setFound(hits);
      setState("done");
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [query]);

  const open = (hit: Found | undefined) => {
    if (!hit && query.trim() === "") return;
    go(hit?.href ?? hrefOf("search", { q: query.trim() }));
    ref.current!.close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by !== 0) {
      event.preventDefault();
      setChosen((index) => Math.min(found.length, Math.max(0, index + by)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(found[chosen]);
    }
  };
  return (
    <dialog
      ref={ref}
      class="palette"
      aria-label="Search everything"
      onClose={onClose}
      onClick={(event) => event.target === ref.current && event.currentTarget.close()}
    >
      <div class="palette-input">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded={found.length > 0}
          aria-controls="palette-results"
          aria-activedescendant={found.length > 0 ? `hit-${chosen}` : undefined}
          aria-label="Search checkpoints, knowledge and code"
          placeholder={`Search ${project.value === undefined ? "all projects" : projectName(project.value)}`}
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
      </div>
      <div id="palette-results" role="listbox" aria-label="Results" tabIndex={-1}>
        {found.map((hit, index) => (
          <div
            key={hit.href}
            id={`hit-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            class="hit"
            onClick={() => open(hit)}
          >
            <span class={`kind ${hit.kind}`}>{hit.kind}</span>
            <span class="hit-text" dir="auto">
              {hit.text}
            </span>
            <span class="soft">{hit.where}</span>
          </div>
        ))}
        {query.trim() !== "" && (
          <div
            id={`hit-${found.length}`}
            role="option"
            tabIndex={-1}
            aria-selected={chosen === found.length}
            class="hit all"
            onClick={() => open(undefined)}
          >
            Show all results, and why each was found
          </div>
        )}
      </div>
      <p class="palette-state soft" role="status">
        {state === "busy"
          ? "Searching…"
          : state === "done"
            ? `${formatPlural(found.length, "hit")}${found.length > 0 && found.every(({ isWeak }) => isWeak) ? ". None matches well; these are the nearest." : ""}`
            : "Type to search. Enter opens, Esc closes."}
      </p>
    </dialog>
  );
}
