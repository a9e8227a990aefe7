import { useRef, useState } from "preact/hooks";
import { formatDay, formatPlural } from "../../parts/format.ts";
import { param, setParams } from "../../state/route.ts";
import { type DayRange, moveDays } from "./move-days.ts";
import { type DayCount, SHOWN_DAYS, useDays } from "./use-days.ts";

const HEIGHT = 44;

/** A bar for each day. Dragging over bars, or the arrow keys and Enter, select their days. */
export function DayBars() {
  const days = useDays();
  const chart = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<DayRange>();
  const [cursor, setCursor] = useState<DayRange>();
  if (!days)
    return (
      <div class="day-chart">
        <div class="days" aria-busy="true" />
      </div>
    );
  const total = days.reduce((sum, { count }) => sum + count, 0);
  const indexAt = (event: PointerEvent) => {
    const { left, width } = chart.current!.getBoundingClientRect();
    return Math.min(days.length - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * days.length)));
  };
  const select = (range: DayRange) => setParams({ from: days[lowest(range)]!.day, to: days[highest(range)]!.day });
  const end = () => {
    if (drag) select(drag);
    setDrag(undefined);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const range = cursor ?? { from: days.length - 1, to: days.length - 1 };
    if (event.key === "Enter" || event.key === " ") select(range);
    else if (event.key === "Escape") setParams({ from: undefined, to: undefined });
    else {
      const moved = moveDays(range, event.key, event.shiftKey, days.length);
      if (!moved) return;
      setCursor(moved);
    }
    event.preventDefault();
  };
  const marked = drag ?? cursor;
  const isIn = (index: number, day: string) =>
    marked ? index >= lowest(marked) && index <= highest(marked) : day >= (param("from") ?? "") && day <= (param("to") ?? "9999");
  const text = describe(days, cursor ?? { from: days.length - 1, to: days.length - 1 });
  return (
    <div
      class="day-chart"
      role="slider"
      tabIndex={0}
      aria-label={`${formatPlural(total, "checkpoint")} in ${SHOWN_DAYS} days`}
      aria-valuemin={1}
      aria-valuemax={days.length}
      aria-valuenow={(cursor?.to ?? days.length - 1) + 1}
      aria-valuetext={text}
      onKeyDown={onKeyDown}
      onBlur={() => setCursor(undefined)}
    >
      <svg
        ref={chart}
        class="days"
        viewBox={`0 0 ${SHOWN_DAYS * 10} ${HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: indexAt(event), to: indexAt(event) });
        }}
        onPointerMove={(event) => drag && setDrag({ from: drag.from, to: indexAt(event) })}
        onPointerUp={end}
      >
        <Bars days={days} isIn={isIn} />
      </svg>
      <p class="soft day-help">{text}. Arrow keys move, Shift extends, Enter selects, Escape shows all days.</p>
    </div>
  );
}

function Bars({ days, isIn }: { readonly days: readonly DayCount[]; readonly isIn: (index: number, day: string) => boolean }) {
  const most = Math.max(1, ...days.map(({ count }) => count));
  return (
    <>
      {days.map(({ day, count }, index) => {
        const height = count === 0 ? 1.5 : Math.max(4, (count / most) * (HEIGHT - 2));
        return (
          <g key={day} class={isIn(index, day) ? "in" : undefined}>
            <title>{describe(days, { from: index, to: index })}</title>
            <rect class="hover" x={index * 10} y={0} width={10} height={HEIGHT} />
            <rect x={index * 10 + 1.5} y={HEIGHT - height} width={7} height={height} />
          </g>
        );
      })}
    </>
  );
}

const lowest = ({ from, to }: DayRange) => Math.min(from, to);
const highest = ({ from, to }: DayRange) => Math.max(from, to);

/** Names the days of a range and counts their checkpoints. */
function describe(days: readonly DayCount[], range: DayRange): string {
  const own = days.slice(lowest(range), highest(range) + 1);
  const count = formatPlural(
    own.reduce((sum, day) => sum + day.count, 0),
    "checkpoint",
  );
  const first = formatDay(own[0]!.day);
  return own.length === 1 ? `${first}: ${count}` : `${first} to ${formatDay(own.at(-1)!.day)}: ${count}`;
}
