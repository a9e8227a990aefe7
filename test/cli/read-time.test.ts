import { describe, expect, it } from "vitest";
import { readTime } from "../../src/cli/read-time.ts";

const now = new Date(2026, 10, 17, 9, 30);
const midnight = (day: number) => new Date(2026, 10, day).toISOString();

describe("a time on the command line", () => {
  it.each([
    ["2026-11-16", midnight(16)],
    ["yesterday", midnight(16)],
    ["Today", midnight(17)],
    ["7d", new Date(now.getTime() - 7 * 86_400_000).toISOString()],
    ["12h", new Date(now.getTime() - 12 * 3_600_000).toISOString()],
    ["90min", new Date(now.getTime() - 90 * 60_000).toISOString()],
    ["2026-01-31T00:00:00Z", "2026-01-31T00:00:00.000Z"],
    ["2026-01-31T02:00:00+02:00", "2026-01-31T00:00:00.000Z"],
  ])("reads %s", (text, time) => expect(readTime(text, now)).toBe(time));

  it("reads a duration as the future where a time lies ahead", () => {
    expect(readTime("30d", now, { future: true })).toBe(new Date(now.getTime() + 30 * 86_400_000).toISOString());
  });

  it.each(["soon", "2026-13-01", "2026-02-30", "7", "", "d", "-7d"])("rejects %j", (text) => expect(readTime(text, now)).toBeUndefined());
});
