import { useEffect, useState } from "preact/hooks";
import { followChanges } from "../state/follow-changes.ts";
import { useShortcuts } from "../state/keyboard.ts";
import { followProjects, loadProjects } from "../state/projects.ts";
import { go, hrefOf, PAGES, project, route } from "../state/route.ts";
import { toggleTheme } from "../state/theme.ts";
import { PageView } from "./page-view.tsx";
import { Palette } from "./palette.tsx";
import { ShortcutsDialog } from "./shortcuts-dialog.tsx";
import { SideBar } from "./side-bar.tsx";
import { TopBar } from "./top-bar.tsx";

/** The frame around every page: search at the top, pages and projects on the left. */
export function Frame() {
  const [open, setOpen] = useState<"palette" | "shortcuts" | "menu">();
  const close = () => setOpen(undefined);
  useEffect(() => {
    void loadProjects();
    const stops = [followProjects(), followChanges()];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  useEffect(close, [route.value.page, project.value]);
  useShortcuts([
    { keys: "Ctrl-K", text: "Search everything", run: () => setOpen("palette") },
    { keys: "/", text: "Search everything", run: () => setOpen("palette") },
    { keys: "?", text: "Show shortcuts", run: () => setOpen("shortcuts") },
    { keys: "d", text: "Light or dark", run: toggleTheme },
    ...PAGES.map((page, index) => ({ keys: String(index + 1), text: `Go to ${page}`, run: () => go(hrefOf(page)) })),
  ]);
  return (
    <div class={open === "menu" ? "frame with-menu" : "frame"}>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to content
      </a>
      <TopBar
        onSearch={() => setOpen("palette")}
        onHelp={() => setOpen("shortcuts")}
        onMenu={() => setOpen(open === "menu" ? undefined : "menu")}
        isMenuOpen={open === "menu"}
      />
      <SideBar />
      <main id="main" tabIndex={-1}>
        <PageView />
      </main>
      {open === "palette" && <Palette onClose={close} />}
      {open === "shortcuts" && <ShortcutsDialog onClose={close} />}
    </div>
  );
}

/** The address belongs to the page, so the skip link moves the focus without changing it. */
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
