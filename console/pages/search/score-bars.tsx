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

/** Explains the two scales, once per answer. */
export function ScaleNote() {
  return (
    <p class="soft scales">
      Keyword bars show the share of the best keyword score in this answer. Semantic bars show the similarity of meaning, from 0 to 1.
    </p>
  );
}

/** Shows how much of a hit is due to its keywords and how much to its meaning. */
export function ScoreBars({ found: { keyword, semantic }, bestKeyword }: ScoreBarsProps) {
  const share = keyword && bestKeyword > 0 ? keyword.score / bestKeyword : 0;
  const similarity = Math.max(0, semantic?.score ?? 0); // a cosine can be slightly negative
  return (
    <div class="bars">
      <Bar name="keyword" part={keyword} share={share} value={`${Math.round(share * 100)} % of the best`} />
      <Bar name="semantic" part={semantic} share={similarity} value={`${similarity.toFixed(2)} of 1`} />
    </div>
  );
}

interface BarProps {
  readonly name: string;
  readonly part: Part | undefined;
  /** Length of the bar, from 0 to 1. */
  readonly share: number;
  /** The share in words, with its scale. */
  readonly value: string;
}

function Bar({ name, part, share, value }: BarProps) {
  const text = part ? `rank ${part.rank}, score ${part.score.toFixed(2)}` : "no match";
  return (
    <div class={`bar ${name}`} title={`${name}: ${text}`}>
      <span>{name}</span>
      <span class="track" aria-hidden="true">
        <span style={{ width: `${Math.round(Math.max(0, Math.min(1, share)) * 100)}%` }} />
      </span>
      <span class="soft">{part ? `rank ${part.rank}, ${value}` : "no match"}</span>
    </div>
  );
}
