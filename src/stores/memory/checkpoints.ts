import type { Checkpoint, CheckpointSort } from "../../model/checkpoint.ts";
import type { CheckpointStore } from "../../ports/checkpoint-store.ts";

export function memoryCheckpoints(): CheckpointStore {
  const byId = new Map<string, Checkpoint>();
  return {
    async put(checkpoint) {
      if (!byId.has(checkpoint.id)) byId.set(checkpoint.id, structuredClone(checkpoint));
    },
    async get(id) {
      return structuredClone(byId.get(id));
    },
    async list({ limit, offset, sortBy, after }) {
      const time = TIME[sortBy];
      const newestFirst = (a: Position, b: Position) => (a.at === b.at ? (a.id < b.id ? -1 : a.id > b.id ? 1 : 0) : a.at < b.at ? 1 : -1);
      const position = (checkpoint: Checkpoint): Position => ({ at: time(checkpoint), id: checkpoint.id });
      const rest = [...byId.values()]
        .sort((a, b) => newestFirst(position(a), position(b)))
        .filter((checkpoint) => !after || newestFirst(position(checkpoint), after) > 0);
      return { checkpoints: structuredClone(rest.slice(offset, offset + limit)), total: byId.size };
    },
    async delete(id) {
      return byId.delete(id);
    },
  };
}

interface Position {
  readonly at: string;
  readonly id: string;
}

const TIME: Record<CheckpointSort, (checkpoint: Checkpoint) => string> = {
  created_at: (checkpoint) => checkpoint.createdAt,
  updated_at: (checkpoint) => checkpoint.updatedAt,
};
