import { CairnError } from "../../model/errors.ts";
import { SHARED_PROJECT_ID } from "../../model/ids.ts";
import type { ProjectStore, Storage } from "../../ports/storage.ts";
import { countProject } from "../rows/count-project.ts";
import { memoryCheckpoints } from "./checkpoints.ts";
import { memoryCode } from "./code.ts";
import { memoryEventLog } from "./event-log.ts";
import { memoryKnowledge } from "./knowledge.ts";

/** Projects that live as long as the process: for tests and for trying things out. */
export function memoryStorage(): Storage {
  const projects = new Map<string, ProjectStore>();
  const setAside: ProjectStore[] = [];
  return {
    async create(projectPath) {
      let project = projects.get(projectPath);
      if (!project) {
        const log = memoryEventLog();
        const code = memoryCode(projectPath);
        const events = { ...log, codeMark: async () => `${(await code.counts()).generation} ${JSON.stringify(await code.reports())}` };
        project = { projectPath, checkpoints: memoryCheckpoints(log), knowledge: memoryKnowledge(log), code, events };
        projects.set(projectPath, project);
      }
      return project;
    },
    find: async (projectPath) => projects.get(projectPath),
    projects: async () => [...projects.keys()].filter((id) => id !== SHARED_PROJECT_ID),
    async catalogue({ isWanted = () => true } = {}) {
      const wanted = [...projects.values()].filter(({ projectPath }) => projectPath !== SHARED_PROJECT_ID && isWanted(projectPath));
      return { projects: await Promise.all(wanted.map(countProject)), unread: [] };
    },
    sizeBytes: async () => undefined,
    async checkProject(projectPath) {
      return { projectPath, location: MEMORY, state: projects.has(projectPath) ? "sound" : "absent", problems: [], ...SOUND };
    },
    checkRecords: async () => SOUND,
    repairRecords: async () => ({ quarantined: [], rebuilt: [] }),
    async quarantine(projectPath, problems) {
      const project = projects.get(projectPath);
      if (!project) throw new CairnError("not_found", "There is no such project in memory, so nothing was set aside.");
      setAside.push(project);
      projects.delete(projectPath);
      return { projectPath, location: MEMORY, movedTo: `${MEMORY}, set aside as number ${setAside.length}`, problems };
    },
    async remove(projectPath) {
      if (!projects.delete(projectPath)) throw new CairnError("not_found", "There is no such project in memory.");
    },
    check: async () => {},
    close: async () => projects.clear(),
  };
}

/** Nothing is derived here, and nothing is read back from a disk. */
const SOUND = { damaged: [], stale: [], quarantined: 0 };

const MEMORY = "the memory of this process";
