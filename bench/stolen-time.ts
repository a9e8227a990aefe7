import { readFileSync } from "node:fs";

/** How much of the processors' time the machine's host gave to other machines, second by second. Only Linux tells it. */
export interface StolenTime {
  /** Of all the time since the watch began, 0…1. */
  share(): number;
  /** Whether hardly anything was taken away between these two moments of `performance.now()`. */
  isCalm(from: number, to: number): boolean;
  stop(): void;
}

const CALM_SHARE = 0.03;

interface Look {
  readonly at: number;
  readonly stolen: number;
  readonly all: number;
}

export function watchStolenTime(): StolenTime {
  const looks: Look[] = [look()];
  const timer = setInterval(() => looks.push(look()), 1_000);
  timer.unref();
  const between = (a: Look, b: Look) => (b.stolen - a.stolen) / Math.max(1, b.all - a.all);
  return {
    share: () => between(looks[0]!, look()),
    isCalm: (from, to) =>
      looks.every((one, index) => {
        const next = looks[index + 1];
        return next ? one.at > to || next.at < from || between(one, next) < CALM_SHARE : one.at > to;
      }),
    stop: () => {
      clearInterval(timer);
      looks.push(look());
    },
  };
}

function look(): Look {
  const at = performance.now();
  if (process.platform !== "linux") return { at, stolen: 0, all: 0 };
  const [, ...ticks] = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]!.trim().split(/\s+/).map(Number);
  return { at, stolen: ticks[7]!, all: ticks.slice(0, 8).reduce((sum, one) => sum + one, 0) };
}
