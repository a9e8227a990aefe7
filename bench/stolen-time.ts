import { readFileSync } from "node:fs";

/** Measures the CPU time that the host of a virtual machine gave to other machines (steal time). Only Linux reports it. */
export interface StolenTime {
  /** Returns the share of all CPU time since the start, 0…1. */
  share(): number;
  /** Returns whether almost no time was stolen between two values of `performance.now()`. */
  isCalm(from: number, to: number): boolean;
  stop(): void;
}

const CALM_SHARE = 0.03;

interface Sample {
  readonly at: number;
  readonly stolen: number;
  readonly all: number;
}

export function watchStolenTime(): StolenTime {
  const samples: Sample[] = [readSample()];
  const timer = setInterval(() => samples.push(readSample()), 1_000);
  timer.unref();
  const between = (a: Sample, b: Sample) => (b.stolen - a.stolen) / Math.max(1, b.all - a.all);
  return {
    share: () => between(samples[0]!, readSample()),
    isCalm: (from, to) =>
      samples.every((one, index) => {
        const next = samples[index + 1];
        return next ? one.at > to || next.at < from || between(one, next) < CALM_SHARE : one.at > to;
      }),
    stop: () => {
      clearInterval(timer);
      samples.push(readSample());
    },
  };
}

function readSample(): Sample {
  const at = performance.now();
  if (process.platform !== "linux") return { at, stolen: 0, all: 0 };
  const [, ...ticks] = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]!.trim().split(/\s+/).map(Number);
  return { at, stolen: ticks[7]!, all: ticks.slice(0, 8).reduce((sum, one) => sum + one, 0) };
}
