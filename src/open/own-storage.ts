import type { Storage } from "../ports/storage.ts";

/** Wraps a caller's storage: its methods work when they are spread, also those of a class, and closing stays with the caller. */
export function ownStorage(own: Storage): Storage {
  return {
    create: (projectId) => own.create(projectId),
    find: (projectId) => own.find(projectId),
    projects: () => own.projects(),
    catalogue: (options) => own.catalogue(options),
    ...(own.searchBounds && { searchBounds: (query) => own.searchBounds!(query) }),
    sizeBytes: (projectId) => own.sizeBytes(projectId),
    checkProject: (projectId) => own.checkProject(projectId),
    checkRecords: (projectId) => own.checkRecords(projectId),
    repairRecords: (projectId) => own.repairRecords(projectId),
    quarantine: (projectId, problems) => own.quarantine(projectId, problems),
    remove: (projectId) => own.remove(projectId),
    ...(own.importCode && { importCode: (projectId, file, options) => own.importCode!(projectId, file, options) }),
    ...(own.copyTo && { copyTo: (projectId, file, options) => own.copyTo!(projectId, file, options) }),
    check: () => own.check(),
    close: async () => {},
  };
}
