import type { Cairn } from "../../src/operations/cairn.ts";

/** Parts of a sentence, so that records differ and share words. */
const WORDS =
  "certificate rotation database migration index queue retry lease console search embedding vector backup restore kernel parser token cache schema fence balancer proxy timeout deadlock cursor webhook".split(
    " ",
  );

/** Returns the path of the project with this number. */
export const manyProject = (index: number) => `/many/${index}`;

/** Creates projects with checkpoints in them, the same for the same numbers. */
export async function createManyProjects(
  cairn: Pick<Cairn, "checkpoints">,
  count: number,
  { records = 1, concurrency = 4 } = {},
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next++;
      for (let record = 0; record < records; record++)
        await cairn.checkpoints.save({
          projectPath: manyProject(index),
          summary: `${sentence(index * 31 + record)} ${index}`,
          description: sentence(index * 17 + record + 5),
        });
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

function sentence(seed: number): string {
  let state = (seed * 2_654_435_761 + 12_345) >>> 0;
  return Array.from({ length: 10 }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return WORDS[(state >>> 8) % WORDS.length];
  }).join(" ");
}
