/** The fields of a step that the drawing shows. */
export interface DrawnStep {
  readonly node_id: string;
  readonly kind: string;
  readonly branch: string;
  readonly attempt: number;
  readonly next_node?: string | undefined;
  readonly note?: string | undefined;
}

const MARK: Readonly<Record<string, string>> = { start: "○", node: "●", failed: "✗", pause: "‖", answer: "▸", rewind: "↺" };

/**
 * Draws the path of a run through its graph, from top to bottom. Each branch of a fork and each sub-graph has its own line;
 * consecutive repeated steps are counted.
 */
export function drawPath(steps: readonly DrawnStep[], status: string): string {
  const lines: string[] = [];
  let beside = new Map<string, DrawnStep[]>();
  const flush = () => {
    const branches = [...beside];
    for (const [index, [branch, taken]] of branches.entries()) {
      const corner = index === branches.length - 1 ? "╰" : "├";
      lines.push(`│ ${corner}─ ${branchName(branch)}: ${counted(taken.map(label)).join(" → ")}`);
    }
    beside = new Map();
  };
  let row: string[] = [];
  const flushRow = () => {
    for (const text of counted(row)) lines.push(text);
    row = [];
  };
  for (const step of steps) {
    if (step.branch !== "") {
      flushRow();
      beside.set(step.branch, [...(beside.get(step.branch) ?? []), step]);
      continue;
    }
    flush();
    row.push(`${MARK[step.kind] ?? "·"} ${label(step)}`);
  }
  flushRow();
  flush();
  const last = steps.findLast(({ branch }) => branch === "");
  if (status === "completed") lines.push("◆ end");
  else if (last?.next_node) lines.push(`┊ next: ${last.next_node} (${status})`);
  return lines.join("\n");
}

function label({ node_id, kind, attempt, note }: DrawnStep): string {
  const tries = attempt > 1 || kind === "failed" ? ` (try ${attempt})` : "";
  const said = kind === "failed" || kind === "pause" ? noteText(note) : "";
  const name = node_id === "__start__" ? "start" : node_id;
  const inBranch =
    kind === "failed" ? "failed" : kind === "pause" ? "waits" : kind === "answer" ? "answered" : kind === "rewind" ? "set back" : "";
  return `${name}${tries}${inBranch ? ` ${inBranch}` : ""}${said ? `: ${said}` : ""}`;
}

/** `fan#2/left` → `fan left`; the position shows the visit. */
function branchName(branch: string): string {
  return branch.replace(/#\d+/g, "").replaceAll("/", " ");
}

function counted(texts: readonly string[]): string[] {
  const rows: { text: string; times: number }[] = [];
  for (const text of texts) {
    const before = rows.at(-1);
    if (before?.text === text) before.times++;
    else rows.push({ text, times: 1 });
  }
  return rows.map(({ text, times }) => (times > 1 ? `${text} ×${times}` : text));
}

/** The question or the message that goes with a step. */
function noteText(note: string | undefined): string {
  if (!note) return "";
  let text = note;
  try {
    const { message, question } = JSON.parse(note);
    const said = message ?? question ?? "";
    text = typeof said === "string" ? said : JSON.stringify(said);
  } catch {
    // From another engine, or with tagged values: shown unchanged.
  }
  return oneLine(text);
}

/** Returns a short text on one line, without terminal control characters. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach the terminal
  const line = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim();
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}
