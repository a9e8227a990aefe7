import { type CheckpointSaverTestInitializer, deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import type { CairnSaver } from "../../src/adapters/langgraph/index.ts";

/** LangGraph's own validation suite, the delta channels included. It expects the test runner's functions as globals. */
export function validateSaver(suite: CheckpointSaverTestInitializer<CairnSaver>): void {
  Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test });
  validate(suite);
  deltaChannelHistoryTests(suite);
}
