/** Returns the path of the code index that belongs to a project's database: `x.db` has `x.code.db` next to it. */
export function codeFileOf(projectFile: string): string {
  return `${projectFile.replace(/\.db$/, "")}.code.db`;
}

/**
 * Returns whether a path is that of a project's code index. Only such a file is derived data: it may be dropped, and its commits do not
 * wait for the disk. The folder is part of the test because a system may be named `project_….code`.
 */
export function isCodeFile(path: string): boolean {
  return /[\\/]projects[\\/]project_[0-9a-f]{16}\.code\.db$/.test(path);
}
