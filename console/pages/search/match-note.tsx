/** Says how well the answer fits. Hits are shown whatever it says, because a weak hit can still help a person. */
export function MatchNote({
  match,
  degraded,
}: {
  readonly match: "high" | "medium" | "low" | "none";
  readonly degraded: readonly string[];
}) {
  return (
    <>
      <p class="match">
        <span class={match === "none" || match === "low" ? "badge warn" : "badge good"}>{LABELS[match]}</span>
        {match === "low" && <span class="soft">The first hit may be right. The answer for agents marks it as uncertain.</span>}
        {match === "none" && <span class="soft">Nothing matches well. These are the nearest records; the answer for agents says so.</span>}
      </p>
      {degraded.map((reason) => (
        <p key={reason} class="badge warn">
          {reason}
        </p>
      ))}
    </>
  );
}

const LABELS = { high: "high match", medium: "medium match", low: "weak match", none: "no good match" } as const;
