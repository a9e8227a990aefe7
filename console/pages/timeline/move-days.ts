/** Days of the chart by their index: where a selection began, and where it ends now. */
export interface DayRange {
  readonly from: number;
  readonly to: number;
}

const WEEK = 7;
const STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -WEEK,
  PageUp: WEEK,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** Moves the end of a range by a key, or extends the range with Shift. Returns `undefined` for other keys. */
export function moveDays({ from, to }: DayRange, key: string, isExtended: boolean, count: number): DayRange | undefined {
  const step = STEPS[key];
  if (step === undefined) return undefined;
  const next = Math.min(count - 1, Math.max(0, to + step));
  return { from: isExtended ? from : next, to: next };
}
