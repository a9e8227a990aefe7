import { hrefOf, PAGES, route } from "../state/route.ts";
import { ProjectSwitcher } from "./project-switcher.tsx";

export const PAGE_TITLE: Record<(typeof PAGES)[number], string> = {
  timeline: "Timeline",
  search: "Search",
  sessions: "Sessions",
  knowledge: "Knowledge",
  code: "Code",
  runs: "Runs",
  systems: "Systems",
  health: "Health",
};

/** Pages and projects. On a narrow screen it is a menu. */
export function SideBar() {
  const { page } = route.value;
  return (
    <aside class="side" id="side">
      <nav aria-label="Pages">
        <ul>
          {PAGES.map((name) => (
            <li key={name}>
              <a href={hrefOf(name)} aria-current={name === page ? "page" : undefined}>
                {PAGE_TITLE[name]}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <ProjectSwitcher />
    </aside>
  );
}
