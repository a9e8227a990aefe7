import type { ProjectStore, Storage } from "../../ports/storage.ts";
import { memoryCheckpoints } from "./checkpoints.ts";

/** Projects that live as long as the process: for tests and for trying things out. */
export function memoryStorage(): Storage {
  const projects = new Map<string, ProjectStore>();
  return {
    async create(projectId) {
      let project = projects.get(projectId);
      if (!project) {
        project = { projectId, checkpoints: memoryCheckpoints() };
        projects.set(projectId, project);
      }
      return project;
    },
    find: async (projectId) => projects.get(projectId),
    projects: async () => [...projects.keys()],
    check: async () => {},
    close: async () => projects.clear(),
  };
}
