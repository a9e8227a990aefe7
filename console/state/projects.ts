import { signal } from "@preact/signals";
import { call, type Output } from "../api/call.ts";
import { onEvent } from "../api/events.ts";

export type ProjectEntry = Output<"project_list">["projects"][number];

/** All projects that the caller may see, by last activity. `undefined` until they are loaded. */
export const projects = signal<readonly ProjectEntry[] | undefined>(undefined);
export const projectsError = signal<Error | undefined>(undefined);

/** Projects in the list: the most recent ones. Others are reached by search. */
const LIMIT = 100;
const SETTLE_MS = 500;

export async function loadProjects(): Promise<void> {
  try {
    const { projects: found } = await call("project_list", { limit: LIMIT });
    projects.value = found.toSorted((a, b) => (b.last_activity_at ?? "").localeCompare(a.last_activity_at ?? ""));
    projectsError.value = undefined;
  } catch (error) {
    projectsError.value = error as Error;
  }
}

/** Keeps the counts current while records change. */
export function followProjects(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = onEvent(({ kind, action }) => {
    if ((kind !== "checkpoint" && kind !== "knowledge") || action === "changed") return; // those come from a new list
    timer ??= setTimeout(() => {
      timer = undefined;
      void loadProjects();
    }, SETTLE_MS);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}
