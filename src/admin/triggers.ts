import type { DoctorSettings, SystemMeasures, Trigger } from "../model/doctor.ts";
import { megabytes } from "../text/megabytes.ts";

/** Compares the measurements of a system with the thresholds and returns one result per condition. */
export function triggersOf(measures: SystemMeasures, settings: DoctorSettings): Trigger[] {
  const { processes, windowSeconds, bytes } = measures;
  const { processesMax, sizeMaxBytes } = settings;
  return [
    {
      name: "processes",
      fired: processes.length > processesMax,
      measured: processes.length,
      limit: processesMax,
      message: `${processes.length} process${processes.length === 1 ? "" : "es"} in ${windowSeconds} s${list(processes)}; limit ${processesMax}`,
    },
    writeRate(measures, settings),
    {
      name: "size",
      fired: bytes > sizeMaxBytes,
      measured: bytes,
      limit: sizeMaxBytes,
      message: `${megabytes(bytes)} with its write-ahead log; limit ${megabytes(sizeMaxBytes)}`,
    },
    recovery(measures, settings),
    compliance(settings),
  ];
}

/** Share of the write budget above which the trigger fires: batching cannot absorb more writes for long. */
const BUDGET_SHARE = 0.9;

function writeRate({ commitsPerSecond: measured, busiestComponent, windowSeconds }: SystemMeasures, settings: DoctorSettings): Trigger {
  const limit = BUDGET_SHARE * settings.commitsPerSecond;
  const by = busiestComponent === undefined ? "" : ` by ${busiestComponent}`;
  return {
    name: "write_rate",
    fired: measured > limit,
    measured,
    limit,
    message: `${measured.toFixed(2)} commits/s${by} over ${windowSeconds} s; limit ${Number(limit.toFixed(3))}/s, 90 % of the write budget`,
  };
}

function recovery({ rtoSeconds: measured }: SystemMeasures, { rtoSeconds: required, rtoFloorSeconds: floor }: DoctorSettings): Trigger {
  const tooSlow = measured !== undefined && measured > required;
  const tooStrict = required < floor;
  const result = measured === undefined ? "not measured" : `a trial restore took ${measured.toFixed(2)} s`;
  return {
    name: "rto",
    fired: tooSlow || tooStrict,
    measured,
    limit: required,
    message: `${result}; required ${required} s${tooStrict ? `, below the ${floor} s that a file can guarantee` : ""}`,
  };
}

function compliance({ compliance: { centralBackup, pitr, auditLog } }: DoctorSettings): Trigger {
  const needed = [centralBackup && "central backup", pitr && "point-in-time recovery", auditLog && "an audit log"].filter(Boolean);
  return {
    name: "compliance",
    fired: needed.length > 0,
    measured: needed.length,
    limit: 0,
    message: needed.length > 0 ? `required: ${needed.join(", ")}` : "no requirement that a file cannot meet",
  };
}

function list(processes: readonly string[]): string {
  return processes.length > 1 ? ` (${processes.slice(0, 5).join(", ")}${processes.length > 5 ? ", …" : ""})` : "";
}
