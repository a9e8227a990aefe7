import assert from "node:assert/strict";
import { bytes } from "./assertions.ts";
import { newRun, type RunCases } from "./run-samples.ts";

/** The event log of a run store that has one. */
export const RUN_EVENT_CASES: RunCases = {
  "logs each step and change of status of a run once": async (store) => {
    const log = store.events;
    if (!log) return; // plain files have no log
    const start = await log.head();
    const lease = await store.start(newRun("r", { project: "/p" }));
    await store.renew(lease, 10_000);
    await store.save({ runId: "r", nodeId: "a", state: bytes("x") }, { fence: lease.fence });
    await store.release(lease, { status: "paused" });
    await store.deleteRun("r");
    let page = await log.readAfter(start, 100);
    for (let attempt = 0; page.isPending && attempt < 100; attempt++) {
      await new Promise((resolve) => setTimeout(resolve, 50)); // another transaction of the server is open
      page = await log.readAfter(start, 100);
    }
    assert.deepEqual(
      page.events.map(({ action, id, project, status, sequence }) => [action, id, project, status, sequence]),
      [
        ["step", "r", "/p", "running", 1],
        ["step", "r", "/p", "running", 2],
        ["status", "r", "/p", "paused", 2],
        ["deleted", "r", "/p", "paused", 2],
      ],
    );
  },
};
