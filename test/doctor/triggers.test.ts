import { describe, expect, it } from "vitest";
import { triggersOf } from "../../src/admin/triggers.ts";
import { DOCTOR_DEFAULTS, type DoctorSettings, type SystemMeasures } from "../../src/model/doctor.ts";

const calm: SystemMeasures = { processes: ["1@here"], commitsPerSecond: 36, windowSeconds: 60, bytes: 1_000_000_000, rtoSeconds: 30 };
const fired = (measures: Partial<SystemMeasures>, settings: Partial<DoctorSettings> = {}) =>
  triggersOf({ ...calm, ...measures }, { ...DOCTOR_DEFAULTS, ...settings })
    .filter((trigger) => trigger.fired)
    .map(({ name }) => name);

describe("the triggers", () => {
  it("do not fire at their thresholds, which are the first design's", () => {
    expect(fired({})).toEqual([]);
    expect(DOCTOR_DEFAULTS).toMatchObject({ processesMax: 1, commitsPerSecond: 40, sizeMaxBytes: 1_000_000_000, rtoFloorSeconds: 10 });
  });

  it.each<[string, Partial<SystemMeasures>, Partial<DoctorSettings>]>([
    ["processes", { processes: ["1@here", "2@here"] }, {}],
    ["processes", { processes: ["1@a", "1@b", "1@c"] }, { processesMax: 2 }],
    ["write_rate", { commitsPerSecond: 36.01 }, {}],
    ["write_rate", { commitsPerSecond: 0.91 }, { commitsPerSecond: 1 }],
    ["size", { bytes: 1_000_000_001 }, {}],
    ["size", { bytes: 5_000 }, { sizeMaxBytes: 4_999 }],
    ["rto", { rtoSeconds: 30.1 }, {}],
    ["rto", { rtoSeconds: 0.1 }, { rtoSeconds: 9.9 }],
    ["rto", { rtoSeconds: undefined }, { rtoSeconds: 5 }],
    ["compliance", {}, { compliance: { centralBackup: true, pitr: false, auditLog: false } }],
    ["compliance", {}, { compliance: { centralBackup: false, pitr: true, auditLog: false } }],
    ["compliance", {}, { compliance: { centralBackup: false, pitr: false, auditLog: true } }],
  ])("fire alone: %s with %j and %j", (name, measures, settings) => {
    const below = { ...calm, bytes: 1_000, rtoSeconds: 1, commitsPerSecond: 0.1 };
    expect(fired({ ...below, ...measures }, settings)).toEqual([name]);
  });

  it("do not fire for what was raised or was not measured", () => {
    expect(
      fired(
        { processes: ["1@a", "1@b"], commitsPerSecond: 89, bytes: 2e9, rtoSeconds: 40 },
        {
          processesMax: 2,
          commitsPerSecond: 100,
          sizeMaxBytes: 3e9,
          rtoSeconds: 60,
        },
      ),
    ).toEqual([]);
    expect(fired({ rtoSeconds: undefined }, { rtoSeconds: 8, rtoFloorSeconds: 5 })).toEqual([]);
  });
});
