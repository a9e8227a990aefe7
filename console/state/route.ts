import { computed, signal } from "@preact/signals";

export const PAGES = ["timeline", "search", "sessions", "knowledge", "code", "runs", "systems", "health"] as const;
export type Page = (typeof PAGES)[number];

export interface Route {
  readonly page: Page;
  readonly params: URLSearchParams;
}

/** The whole state of the console is in the address, after the hash: `#/search?project=…&q=…`. */
export const route = signal<Route>(parse(location.hash));
/** The selected project, or `undefined` for all. Every page keeps it. */
export const project = computed(() => route.value.params.get("project") ?? undefined);

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.slice(1).split("?");
  const name = path.split("/")[1] as Page;
  return { page: PAGES.includes(name) ? name : "timeline", params: new URLSearchParams(query) };
}

export type Changes = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Returns the address of a page. Only the project stays; `changes` sets further parameters. */
export function hrefOf(page: Page, changes: Changes = {}): string {
  const params = new URLSearchParams();
  if (project.value !== undefined) params.set("project", project.value);
  return address(page, apply(params, changes));
}

/** Returns the address of the current page with some parameters changed. `undefined` removes one. */
export function hrefWith(changes: Changes): string {
  return address(route.value.page, apply(new URLSearchParams(route.value.params), changes));
}

export function go(href: string): void {
  location.hash = href;
}

/** Changes parameters of the current page: as a new entry of the history, or in place for a value that is being typed. */
export function setParams(changes: Changes, { replace = false } = {}): void {
  const href = hrefWith(changes);
  if (href === location.hash) return;
  if (!replace) {
    go(href);
    return;
  }
  history.replaceState(null, "", href);
  route.value = parse(href);
}

/** Returns a parameter of the current page. */
export function param(name: string): string | undefined {
  return route.value.params.get(name) ?? undefined;
}

export function paramList(name: string): readonly string[] {
  return route.value.params.getAll(name);
}

function apply(params: URLSearchParams, changes: Changes): URLSearchParams {
  for (const [name, value] of Object.entries(changes)) {
    params.delete(name);
    if (value === undefined || value === "") continue;
    for (const item of typeof value === "string" ? [value] : value) params.append(name, item);
  }
  return params;
}

function address(page: Page, params: URLSearchParams): string {
  return `#/${page}${params.size > 0 ? `?${params}` : ""}`;
}
