import { useRef, useState } from "preact/hooks";
import { formatDay, formatPlural } from "../../parts/format.ts";
import { param, setParams } from "../../state/route.ts";
import { SHOWN_DAYS, useDays } from "./use-days.ts";

const HEIGHT = 44;

/** A bar for each day. Dragging over bars selects their days; the fields below do the same by keyboard. */
export function DayBars() {
  const days = useDays();
  const chart = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<{ readonly from: number; readonly to: number }>();
  if (!days) return <div class="days" aria-busy="true" />;
  const most = Math.max(1, ...days.map(({ count }) => count));
  const total = days.reduce((sum, { count }) => sum + count, 0);
  const indexAt = (event: PointerEvent) => {
    const { left, width } = chart.current!.getBoundingClientRect();
    return Math.min(days.length - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * days.length)));
  };
  const end = () => {
    if (!drag) return;
    const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
    setDrag(undefined);
    setParams({ from: days[from]!.day, to: days[to]!.day });
  };
  const isIn = (index: number, day: string) => {
    if (drag) return index >= Math.min(drag.from, drag.to) && index <= Math.max(drag.from, drag.to);
    return day >= (param("from") ?? "") && day <= (param("to") ?? "9999");
  };
  return (
    <svg
      ref={chart}
      class="days"
      viewBox={`0 0 ${SHOWN_DAYS * 10} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${formatPlural(total, "checkpoint")} in ${SHOWN_DAYS} days`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: indexAt(event), to: indexAt(event) });
      }}
      onPointerMove={(event) => drag && setDrag({ from: drag.from, to: indexAt(event) })}
      onPointerUp={end}
    >
      {days.map(({ day, count }, index) => {
        const height = count === 0 ? 1.5 : Math.max(4, (count / most) * (HEIGHT - 2));
        return (
          <g key={day} class={isIn(index, day) ? "in" : undefined}>
            <title>
              {formatDay(day)}: {formatPlural(count, "checkpoint")}
            </title>
            <rect class="hover" x={index * 10} y={0} width={10} height={HEIGHT} />
            <rect x={index * 10 + 1.5} y={HEIGHT - height} width={7} height={height} />
          </g>
        );
      })}
    </svg>
  );
}
