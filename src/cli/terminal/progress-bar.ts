import type { Host } from "../host.ts";
import { escapeControls } from "./style.ts";
import { cutToWidth } from "./width.ts";

export interface ProgressBar {
  update(done: number, total: number | undefined, message?: string): void;
  /** Removes the bar before other output. */
  clear(): void;
}

const CELLS = 24;
const REDRAW_MS = 80;
/** Cells at the end of the line that stay empty: a terminal prints "^C" there, and on a full line it would wrap, out of reach of `clear`. */
const MARGIN_CELLS = 3;

/** Returns a progress bar on stderr. It prints nothing if stderr is not a terminal. Node creates the stream for the first update: most commands have none. */
export function progressBar(host: Host): ProgressBar {
  let bar: ProgressBar | undefined;
  return {
    update(...progress) {
      bar ??= host.stderr.isTTY && host.env.TERM !== "dumb" ? drawnBar(host) : { update: () => {}, clear: () => {} };
      bar.update(...progress);
    },
    clear: () => bar?.clear(),
  };
}

function drawnBar(host: Host): ProgressBar {
  let drawnAt = 0;
  let visible = false;
  const clear = () => {
    if (visible) host.stderr.write("\r\u001B[2K");
    visible = false;
    host.signal.removeEventListener("abort", clear);
  };
  return {
    update(done, total, message = "") {
      if (host.signal.aborted) return;
      const now = host.now().getTime();
      const finished = total !== undefined && done >= total;
      if (now - drawnAt < REDRAW_MS && !finished) return;
      drawnAt = now;
      // Ctrl-C: what follows is the end of the command.
      if (!visible) host.signal.addEventListener("abort", clear, { once: true });
      visible = true;
      const line = `${barText(done, total)} ${message}`;
      host.stderr.write(`\r\u001B[2K${cutToWidth(escapeControls(line).replaceAll("\n", " "), (host.stderr.columns ?? 80) - MARGIN_CELLS)}`);
    },
    clear,
  };
}

function barText(done: number, total: number | undefined): string {
  if (total === undefined || total <= 0) return `${done}`;
  const share = Math.min(1, Math.max(0, done / total));
  const full = Math.round(share * CELLS);
  return `${"█".repeat(full)}${"░".repeat(CELLS - full)} ${Math.floor(share * 100)
    .toString()
    .padStart(3)} % ${done}/${total}`;
}
