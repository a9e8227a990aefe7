// A process of its own that changes vectors until it is killed. Says "<round>" after each durable commit.
import { openSqlite } from "../../../dist/stores/sqlite/driver/driver.js";
import { vectorSearcher } from "../../../dist/stores/sqlite/vectors/searcher.js";
import { vectorWriter } from "../../../dist/stores/sqlite/vectors/writer.js";

const [path, dimensionText, roundsText, building] = process.argv.slice(2);
const dimension = Number(dimensionText);
const rounds = Number(roundsText);
const database = await openSqlite({ path });
const searcher = vectorSearcher({ path, listsAbove: 500 });
let state = process.pid;
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
const vector = () => Float32Array.from({ length: dimension }, () => random(1000) - 499.5);

for (let round = 1; round <= rounds; round++) {
  const many = random(3) === 0;
  await database.write((tx) => {
    const writer = vectorWriter(tx);
    const from = random(1500);
    writer.put(
      "c",
      1,
      Array.from({ length: many ? 600 : 5 }, (_, i) => ({ key: from + i, vector: vector() })),
    );
    writer.remove("c", 1, many ? Array.from({ length: 300 }, () => random(2000)) : [random(2000)]);
    // A mark that others can look for: one vector, replaced in every round.
    writer.put("marks", 1, [{ key: 1_000_000 + round, vector: Float32Array.from([round, 1]) }]);
  });
  process.stdout.write(`${round}\n`);
  if (building) void searcher.buildLists("c", 1).catch(() => {});
}
database.close();
searcher.close();
