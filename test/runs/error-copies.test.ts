import { expect, it } from "vitest";
import { CairnError } from "../../src/model/errors.ts";
import { RunError } from "../../src/runs/run-error.ts";

it("recognises errors of another copy of the package, but not as one of its subclasses", async () => {
  const copy = (await import(`${"../../src/model/errors.ts"}?copy`)) as typeof import("../../src/model/errors.ts");
  expect(copy.CairnError).not.toBe(CairnError);
  const foreign = new copy.CairnError("conflict", "held");
  expect(foreign instanceof CairnError).toBe(true);
  expect(foreign instanceof RunError).toBe(false);
  expect(new Error("held") instanceof CairnError).toBe(false);
  expect(new RunError("lease", "held", { runId: "r" }) instanceof copy.CairnError).toBe(true);
  expect(Object.keys(foreign)).not.toContain("brand");
});
