interface Part {
  readonly rank: number;
  readonly score: number;
}

export interface FoundBy {
  readonly semantic?: Part | undefined;
  readonly keyword?: Part | undefined;
}

interface ScoreBarsProps {
  readonly found: FoundBy;
  /** The best keyword score of the answer: keyword scores have no upper bound. */
  readonly bestKeyword: number;
}

/** Shows how much of a hit is due to its keywords and how much to its meaning. */
export function ScoreBars({ found: { keyword, semantic }, bestKeyword }: ScoreBarsProps) {
  return (
    <div class="bars">
      <Bar name="keyword" part={keyword} share={keyword && bestKeyword > 0 ? keyword.score / bestKeyword : 0} />
      <Bar name="semantic" part={semantic} share={semantic?.score ?? 0} />
    </div>
  );
}

function Bar({ name, part, share }: { readonly name: string; readonly part: Part | undefined; readonly share: number }) {
  const text = part ? `rank ${part.rank}, ${part.score.toFixed(2)}` : "not found";
  return (
    <div class={`bar ${name}`} title={`${name}: ${text}`}>
      <span>{name}</span>
      <span class="track" aria-hidden="true">
        <span style={{ width: `${Math.round(Math.max(0, Math.min(1, share)) * 100)}%` }} />
      </span>
      <span class="soft">{part ? `#${part.rank} · ${part.score.toFixed(2)}` : "–"}</span>
    </div>
  );
}
