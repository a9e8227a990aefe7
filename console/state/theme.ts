import { effect, signal } from "@preact/signals";

export type Theme = "" | "light" | "dark";

/** The chosen colours; empty for those of the system. */
export const theme = signal<Theme>((document.documentElement.dataset.theme ?? "") as Theme);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  if (theme.value === "") localStorage.removeItem("cairn.theme");
  else localStorage.setItem("cairn.theme", theme.value);
});

/** Switches between light and dark colours. */
export function toggleTheme(): void {
  const isDark = theme.value === "dark" || (theme.value === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  theme.value = isDark ? "light" : "dark";
}
