// A process of its own that imports two versions of one file by turns until it is killed. Reports which after each one that is done.
import { open } from "../../dist/index.js";

const [storage, dataDir] = process.argv.slice(2);
const cairn = await open({ storage, dataDir, embedder: { kind: "static" } });
for (let turn = 0; ; turn++) {
  const name = turn % 2 === 0 ? "even" : "odd";
  const records = Array.from({ length: 40 }, (_, index) => ({
    id: `${name === "even" || index < 30 ? "both" : "odd"}-${index}`,
    kind: "faq",
    category: name,
    subcategory: "",
    question: `What is number ${index} of ${name}?`,
    answer: name,
  }));
  await cairn.knowledge.import({ scope: "shared", source: "file", records });
  process.stdout.write(`${name}\n`);
}
