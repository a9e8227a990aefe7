const TONE: Readonly<Record<string, string>> = {
  running: "info",
  queued: "info",
  answered: "info",
  paused: "warn",
  failed: "bad",
  completed: "good",
};

export function RunStatus({ status }: { readonly status: string }) {
  return <span class={`badge ${TONE[status] ?? ""}`}>{status}</span>;
}
