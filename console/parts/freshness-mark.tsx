export interface Freshness {
  readonly state: "fresh" | "changed" | "gone" | "renamed" | "other_branch" | "unknown";
  readonly reason?: string | undefined;
}

const TEXT: Record<Freshness["state"], string> = {
  fresh: "fresh",
  changed: "code changed since",
  gone: "code is gone",
  renamed: "file was renamed",
  other_branch: "other branch",
  unknown: "",
};
const TONE: Partial<Record<Freshness["state"], string>> = { fresh: "good", changed: "warn", gone: "bad", renamed: "warn" };

/** Marks a record whose code changed after it was saved, so that it is read with care. */
export function FreshnessMark({
  freshness,
  supersededBy,
}: {
  readonly freshness: Freshness | undefined;
  readonly supersededBy: string | null | undefined;
}) {
  return (
    <>
      {freshness && TEXT[freshness.state] !== "" && (
        <span class={`badge ${TONE[freshness.state] ?? ""}`} title={freshness.reason}>
          {TEXT[freshness.state]}
        </span>
      )}
      {supersededBy && (
        <span class="badge" title={`Replaced by ${supersededBy}`}>
          superseded
        </span>
      )}
    </>
  );
}
