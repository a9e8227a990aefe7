import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure } from "../parts/failure.tsx";
import { type Page, route } from "../state/route.ts";
import { PAGE_TITLE } from "./side-bar.tsx";

/** Pages are loaded when they are first shown; the start page comes with the frame. */
const LOAD: Record<Page, () => Promise<{ readonly default: ComponentType }>> = {
  timeline: () => import("../pages/timeline/timeline-page.tsx"),
  search: () => import("../pages/search/search-page.tsx"),
  sessions: () => import("../pages/sessions/sessions-page.tsx"),
  knowledge: () => import("../pages/knowledge/knowledge-page.tsx"),
  code: () => import("../pages/code/code-page.tsx"),
  runs: () => import("../pages/runs/runs-page.tsx"),
  systems: () => import("../pages/systems/systems-page.tsx"),
  health: () => import("../pages/health/health-page.tsx"),
};

export function PageView() {
  const { page } = route.value;
  const [shown, setShown] = useState<{ readonly page: Page; readonly View?: ComponentType; readonly error?: Error }>();
  useEffect(() => {
    let isCurrent = true;
    document.title = `${PAGE_TITLE[page]} · Cairn`;
    LOAD[page]().then(
      ({ default: View }) => isCurrent && setShown({ page, View }),
      () =>
        isCurrent &&
        setShown({ page, error: new Error("This page could not be loaded. The server may have been updated: reload the page.") }),
    );
    return () => {
      isCurrent = false;
    };
  }, [page]);
  // A key that changes the page leaves the focus nowhere. The first page starts at the top, with the link to its content.
  const isFirst = useRef(true);
  useEffect(() => {
    if (!shown) return;
    if (!isFirst.current && document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [shown]);
  if (shown?.page !== page) return <div class="loading" aria-busy="true" />;
  return shown.View ? <shown.View /> : <Failure error={shown.error!} retry={() => location.reload()} />;
}
