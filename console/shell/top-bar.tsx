import { session, signOut } from "../api/session.ts";
import { Icon } from "../parts/icon.tsx";
import { live } from "../state/follow-changes.ts";
import { hrefOf } from "../state/route.ts";
import { theme, toggleTheme } from "../state/theme.ts";

interface TopBarProps {
  readonly onSearch: () => void;
  readonly onHelp: () => void;
  readonly onMenu: () => void;
  readonly isMenuOpen: boolean;
}

export function TopBar({ onSearch, onHelp, onMenu, isMenuOpen }: TopBarProps) {
  const isDark = theme.value === "dark" || (theme.value === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  const access = session.value?.access;
  return (
    <header class="top">
      <button
        type="button"
        class="quiet icon menu-button"
        aria-label="Menu"
        aria-expanded={isMenuOpen}
        aria-controls="side"
        onClick={onMenu}
      >
        <Icon name={isMenuOpen ? "close" : "menu"} />
      </button>
      <a class="brand" href={hrefOf("timeline")}>
        <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
          <ellipse cx="8" cy="13" rx="6.5" ry="2.3" />
          <ellipse cx="8" cy="8.4" rx="4.6" ry="1.9" />
          <ellipse cx="8" cy="4.3" rx="2.8" ry="1.5" />
        </svg>
        Cairn
      </a>
      <button type="button" class="search-box" onClick={onSearch}>
        <Icon name="search" />
        <span>Search checkpoints, knowledge and code</span>
        <kbd>Ctrl K</kbd>
      </button>
      <span class="top-end">
        {live.value === "broken" && <output class="soft offline">Reconnecting…</output>}
        {access === "read" && <span class="badge">read only</span>}
        <button type="button" class="quiet icon" aria-label={isDark ? "Use light colours" : "Use dark colours"} onClick={toggleTheme}>
          <Icon name={isDark ? "sun" : "moon"} />
        </button>
        <button type="button" class="quiet icon" aria-label="Keyboard shortcuts" onClick={onHelp}>
          <Icon name="help" />
        </button>
        <button type="button" class="quiet icon" aria-label="Sign out" onClick={() => void signOut()}>
          <Icon name="out" />
        </button>
      </span>
    </header>
  );
}
