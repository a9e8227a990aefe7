import { useState } from "preact/hooks";
import { Failure } from "../parts/failure.tsx";
import { formatCompact, formatPlural, projectName } from "../parts/format.ts";
import { loadProjects, type ProjectEntry, projects, projectsError } from "../state/projects.ts";
import { hrefOf, project, route } from "../state/route.ts";

/** With more projects than this, the list has a filter. */
const FILTER_FROM = 10;

/** Lists the projects with their counts. Choosing one keeps the page. */
export function ProjectSwitcher() {
  const [filter, setFilter] = useState("");
  const all = projects.value;
  if (projectsError.value && !all) return <Failure error={projectsError.value} retry={() => void loadProjects()} />;
  const shown = (all ?? []).filter(({ project_path }) => project_path.toLowerCase().includes(filter.toLowerCase()));
  const total = (all ?? []).reduce((sum, { checkpoints }) => sum + checkpoints, 0);
  return (
    <nav class="projects" aria-label="Projects" aria-busy={all === undefined}>
      <h2>Projects</h2>
      {(all?.length ?? 0) > FILTER_FROM && (
        <input
          type="search"
          placeholder="Filter projects"
          aria-label="Filter projects"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      <ul>
        <li>
          <a href={hrefIn(undefined)} aria-current={project.value === undefined ? "true" : undefined}>
            <span>All projects</span>
            <span class="count">{formatCompact(total)}</span>
          </a>
        </li>
        {shown.map((entry) => (
          <ProjectLink key={entry.project_path} entry={entry} name={nameIn(entry, all ?? [])} />
        ))}
      </ul>
    </nav>
  );
}

function ProjectLink({ entry: { project_path, checkpoints, knowledge }, name }: { readonly entry: ProjectEntry; readonly name: string }) {
  const counts = `${formatPlural(checkpoints, "checkpoint")}, ${formatPlural(knowledge, "knowledge record")}`;
  return (
    <li>
      <a
        href={hrefIn(project_path)}
        aria-current={project.value === project_path ? "true" : undefined}
        title={`${project_path}\n${counts}`}
      >
        <span dir="auto">{name}</span>
        <span class="count">{formatCompact(checkpoints)}</span>
      </a>
    </li>
  );
}

/** Returns the address of the current page in a project. A question, the words of a filter and the view of deleted records stay; a record does not. */
function hrefIn(path: string | undefined): string {
  const { page, params } = route.value;
  const kept = ["q", "in", "mode", "text", "from", "to", "deleted"].map((name) => [
    name,
    page === "code" ? undefined : (params.get(name) ?? undefined),
  ]);
  return hrefOf(page, { ...Object.fromEntries(kept), project: path });
}

/** Returns the last part of the path, with its parent where two projects share it. */
function nameIn({ project_path }: ProjectEntry, all: readonly ProjectEntry[]): string {
  const name = projectName(project_path);
  const isShared = all.some((other) => other.project_path !== project_path && projectName(other.project_path) === name);
  return isShared ? project_path.split(/[/\\]/).filter(Boolean).slice(-2).join("/") : name;
}
