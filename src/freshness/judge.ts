import type { Anchored, AnchorMark, Freshness, FreshnessState } from "../model/anchor.ts";

/** What is known about the branch on which a record was saved. Absent: the record's commit is part of the current history. */
export interface BranchMark {
  readonly state: "other_branch" | "unknown";
  readonly reason: string;
}

export interface Judged {
  readonly marks: readonly AnchorMark[];
  readonly checked?: Freshness["checked"];
  readonly branch?: BranchMark | undefined;
}

/** The states of files and symbols, the most serious first. */
const SEVERITY: readonly FreshnessState[] = ["gone", "changed", "renamed", "unknown", "fresh"];
/** Digits of a commit in a reason. */
const SHORT = 7;
const NAMES_SHOWN = 2;

/**
 * Returns the state of a record from the states of its anchors: the most serious one of its files and symbols. Commits and branches that
 * a text mentions count only where it names no file and no symbol, because they say nothing about the code.
 */
export function judge(record: Pick<Anchored, "anchors">, { marks, checked, branch }: Judged): Freshness {
  const since = record.anchors.find(({ kind }) => kind === "head")?.value;
  const found = { ...(since !== undefined && { since }), ...(checked && { checked }), anchors: marks };
  if (branch) return { ...branch, ...found };
  const code = marks.filter(({ kind }) => kind === "file" || kind === "symbol");
  const counted = code.length > 0 ? code : marks.filter(({ kind }) => kind === "commit" || kind === "branch");
  const state = SEVERITY.find((one) => counted.some((mark) => mark.state === one)) ?? "unknown";
  const reason = reasonOf(state, counted, since);
  return { state, ...(reason !== undefined && { reason }), ...found };
}

function reasonOf(state: FreshnessState, marks: readonly AnchorMark[], since: string | undefined): string | undefined {
  if (state === "fresh") return undefined;
  const concerned = marks.filter((mark) => mark.state === state);
  if (concerned.length === 0) return undefined;
  const names = concerned.slice(0, NAMES_SHOWN).map(({ value, to }) => (to === undefined ? value : `${value} → ${to}`));
  const more = concerned.length > names.length ? ` and ${concerned.length - names.length} more` : "";
  const commit = since !== undefined && (state === "changed" || state === "gone") ? ` since ${since.slice(0, SHORT)}` : "";
  return `${names.join(", ")}${more}${commit}`;
}

/** Returns the state and the reason as one short text, such as `changed: src/a.ts since 1a2b3c4`. */
export function freshnessText({ state, reason }: Pick<Freshness, "state" | "reason">): string {
  return reason === undefined ? state : `${state}: ${reason}`;
}

/** Returns what is noted next to a record that may not match the code; empty for one that does, or that is not known to differ. */
export function staleNote({ freshness }: Pick<Anchored, "freshness">): string {
  return !freshness || freshness.state === "fresh" || freshness.state === "unknown" ? "" : freshnessText(freshness);
}

/** Returns whether a record is known not to match the code any more. */
export function isStale({ freshness }: Pick<Anchored, "freshness">): boolean {
  return freshness?.state === "changed" || freshness?.state === "gone";
}

/** What the score of a hit counts against hits of less stale records: current ones, changed and gone ones, replaced and outdated ones. */
const WEIGHTS = [1, 0.5, 0.25] as const;

type Ordered = Pick<Anchored, "freshness" | "supersededBy"> & { readonly id?: string; readonly outdated?: number | undefined };

/**
 * Moves hits of stale records down: below each less stale hit whose score is at least their own weighted one, so that a changed record
 * ranks below a current one that matches as well, and above one that hardly matches. A replaced record never ranks above its replacement.
 * Otherwise the order stays, and ordering twice changes nothing.
 */
export function orderByFreshness<Hit>(hits: readonly Hit[], recordOf: (hit: Hit) => Ordered, scoreOf: (hit: Hit) => number): Hit[] {
  const classOf = (hit: Hit) => {
    const record = recordOf(hit);
    return record.supersededBy || (record.outdated ?? 0) > 0 ? 2 : isStale(record) ? 1 : 0;
  };
  const weigh = (hit: Hit) => scoreOf(hit) * WEIGHTS[classOf(hit)];
  const ordered = belowReplacements(hits, recordOf);
  for (let at = 0; at + 1 < ordered.length; ) {
    const [one, next] = [ordered[at]!, ordered[at + 1]!];
    const isLower = classOf(one) > classOf(next) && weigh(next) >= weigh(one);
    if (isLower) ordered.splice(at, 2, next, one);
    at = isLower ? Math.max(0, at - 1) : at + 1;
  }
  return ordered;
}

/** Moves each replaced record directly below its replacement, if that comes later. */
function belowReplacements<Hit>(hits: readonly Hit[], recordOf: (hit: Hit) => Ordered): Hit[] {
  const byId = new Map(hits.map((hit) => [recordOf(hit).id, hit] as const));
  const replacementOf = (hit: Hit) => byId.get(recordOf(hit).supersededBy || undefined);
  /** Counts the replacements that follow each other. Records that replace each other in a circle count as not replaced. */
  const depthOf = (hit: Hit) => {
    const seen = new Set<Hit>();
    for (let one: Hit | undefined = hit; one !== undefined; one = replacementOf(one)) {
      if (seen.has(one)) return 0;
      seen.add(one);
    }
    return seen.size - 1;
  };
  const depths = new Map(hits.map((hit) => [hit, depthOf(hit)]));
  const ordered = [...hits];
  // Replacements first: the records that they replace must find them in their final places.
  for (const hit of [...hits].sort((one, other) => depths.get(one)! - depths.get(other)!)) {
    const replacement = depths.get(hit) === 0 ? undefined : replacementOf(hit);
    if (replacement === undefined || ordered.indexOf(replacement) < ordered.indexOf(hit)) continue;
    ordered.splice(ordered.indexOf(hit), 1);
    ordered.splice(ordered.indexOf(replacement) + 1, 0, hit);
  }
  return ordered;
}

/** The fields by which records are chosen for review. */
export interface Reviewable extends Pick<Anchored, "freshness" | "supersededBy"> {
  readonly uses: number;
  readonly outdated: number;
  readonly updatedAt: string;
}

/** Returns the records that need a review, each with the reason: the most used first, then the newest. */
export function chooseStale<Record extends Reviewable>(records: readonly Record[]): (Record & { readonly reason: string })[] {
  return records
    .map((record) => ({ ...record, reason: reviewReason(record) }))
    .filter(({ reason }) => reason !== "")
    .sort((a, b) => b.uses - a.uses || (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0));
}

/** Returns why a record needs a review; empty if it needs none. */
function reviewReason({ freshness, supersededBy, outdated }: Reviewable): string {
  const hasMoved = isStale({ freshness }) || freshness?.state === "renamed";
  return [
    ...(outdated > 0 ? [`reported as outdated${outdated === 1 ? "" : ` ${outdated} times`}`] : []),
    ...(supersededBy ? [`superseded by ${supersededBy}`] : []),
    ...(hasMoved && freshness ? [freshnessText(freshness)] : []),
  ].join("; ");
}
