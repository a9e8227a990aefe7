import { metrics, type ObservableResult } from "@opentelemetry/api";
import type { SystemReport, TriggerName } from "../model/doctor.ts";
import { VERSION } from "../model/version.ts";

/** Looking at many systems costs something, so that often is enough. */
const REMEMBER_MS = 15_000;

const FIGURES: Readonly<Record<Exclude<TriggerName, "compliance">, readonly [name: string, description: string]>> = {
  processes: ["system.processes", "Processes that wrote to the system in the window or have it open"],
  write_rate: ["system.writes_per_second", "Commits per second of the busiest component over the window"],
  size: ["system.size_bytes", "Size of the system's database, its write-ahead log included"],
  rto: ["system.rto_seconds", "How long the last trial restore took"],
};

export interface ObservedSystems {
  /** What was just found out, so that it is not measured again at once. */
  remember(reports: readonly SystemReport[]): void;
  stop(): void;
}

/** Reports each system's figures and which of its triggers fired whenever metrics are collected; costs nothing when they are not. */
export function observeSystems(measure: () => Promise<readonly SystemReport[]>): ObservedSystems {
  const meter = metrics.getMeter("cairn", VERSION);
  let last: { readonly atMs: number; readonly reports: Promise<readonly SystemReport[]> } | undefined;
  const recent = () => {
    // A system that cannot be read must not stop the collection of other metrics; the doctor reports it.
    if (!last || performance.now() - last.atMs > REMEMBER_MS) last = { atMs: performance.now(), reports: measure().catch(() => []) };
    return last.reports;
  };
  const observe = (name: string, description: string, tell: (report: SystemReport, result: ObservableResult) => void) => {
    const gauge = meter.createObservableGauge(name, { description });
    const report = async (result: ObservableResult) => {
      for (const system of await recent()) tell(system, result);
    };
    gauge.addCallback(report);
    return () => gauge.removeCallback(report);
  };
  const stops = [
    ...Object.entries(FIGURES).map(([trigger, [name, description]]) =>
      observe(name, description, ({ systemId, triggers }, result) => {
        const measured = triggers.find((one) => one.name === trigger)?.measured;
        if (measured !== undefined) result.observe(measured, { system: systemId });
      }),
    ),
    observe("system.trigger.fired", "1 where a condition for the move to PostgreSQL holds", ({ systemId, triggers }, result) => {
      for (const { name, fired } of triggers) result.observe(fired ? 1 : 0, { system: systemId, trigger: name });
    }),
  ];
  return {
    remember(reports) {
      last = { atMs: performance.now(), reports: Promise.resolve(reports) };
    },
    stop() {
      for (const stop of stops) stop();
    },
  };
}
