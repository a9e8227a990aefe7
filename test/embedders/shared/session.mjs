// A process that embeds with the static model of the build when its parent asks, shared with other such processes.
import { staticEmbedder } from "../../../dist/embedders/local/static.js";
import { sharedEmbedder } from "../../../dist/embedders/shared/shared-embedder.js";
import { leaderLease } from "../../../dist/stores/file/leader-lease.js";

const [dataDir, paceMs, isTolerant] = process.argv.slice(2);
const model = staticEmbedder();
let calls = 0;
const counted = {
  ...model,
  async embed(texts, options) {
    calls += texts.length;
    if (Number(paceMs) > 0) await new Promise((resolve) => setTimeout(resolve, Number(paceMs)));
    return model.embed(texts, options);
  },
};
// Tests of a healthy leader must pass on a machine that is many times slower.
const tolerant =
  isTolerant === "true"
    ? { timing: { turnMs: 250, silentTurns: 10_000, requestTurns: 10_000, coverageMs: 600_000 }, expireMs: 600_000, electionMs: 600_000 }
    : {};
const lease = leaderLease({ dataDir, model, expireMs: tolerant.expireMs, electionMs: tolerant.electionMs });
const shared = sharedEmbedder(counted, { lease, mayLead: true, timing: tolerant.timing });
process.on("message", async ({ id, texts }) => {
  if (texts === undefined) return process.send({ id, calls, ...shared.figures() });
  const vectors = await shared.embed(texts);
  process.send({ id, vectors: vectors.map((vector) => Buffer.from(vector.buffer).toString("base64")) });
});
process.on("disconnect", async () => {
  await shared.close();
  process.exit();
});
