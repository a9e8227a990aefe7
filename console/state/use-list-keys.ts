import { useShortcuts } from "./keyboard.ts";

/** Lets j and k move the focus between the elements with `data-row` below a container. Enter and Tab then work as usual. */
export function useListKeys(container: { readonly current: HTMLElement | null }): void {
  const move = (by: number) => {
    const rows = [...(container.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    if (rows.length === 0) return;
    const index = rows.findIndex((row) => row.contains(document.activeElement));
    const row = rows[index === -1 ? 0 : Math.min(rows.length - 1, Math.max(0, index + by))]!;
    row.focus();
    row.scrollIntoView({ block: "nearest" });
  };
  useShortcuts([
    { keys: "j", text: "Next row", run: () => move(1) },
    { keys: "k", text: "Previous row", run: () => move(-1) },
  ]);
}
