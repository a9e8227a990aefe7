import type { IndexedFile } from "../../../../model/code-index.ts";
import { type IndexReport, REPORTS_KEPT, type StoredReport } from "../../../../model/index-report.ts";
import type { CodeJobStore, FilePageQuery } from "../../../../ports/code-store.ts";
import type { CodeDatabase } from "./database.ts";
import { matchGlob, whereOf } from "./filter.ts";

interface ReportRow {
  readonly body: string;
  readonly cancel_requested: number;
}

export const FILE = "file_path AS path, content_hash AS contentHash, generation, indexed_at AS indexedAt, language, bytes, lines, notice";
const ORDER: Readonly<Record<FilePageQuery["sortBy"], string>> = {
  path: "file_path",
  bytes: "bytes DESC, file_path",
  indexed_at: "indexed_at DESC, file_path",
};
const SELECT = "SELECT body, cancel_requested FROM index_reports";

/** The reports of index jobs in the code index of a project, and its list of files. */
export function sqliteJobReports(file: CodeDatabase): CodeJobStore {
  return {
    async report(report) {
      const { jobId, startedAt, updatedAt, status } = report;
      return (await file.writable()).write((tx) => {
        tx.run(
          `INSERT INTO index_reports (job_id, started_at, updated_at, status, body) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (job_id) DO UPDATE SET updated_at = excluded.updated_at, status = excluded.status, body = excluded.body`,
          ...[jobId, startedAt, updatedAt, status, JSON.stringify(report)],
        );
        tx.run(
          "DELETE FROM index_reports WHERE job_id NOT IN (SELECT job_id FROM index_reports ORDER BY started_at DESC, job_id LIMIT ?)",
          REPORTS_KEPT,
        );
        return { cancelRequested: tx.get<ReportRow>(`${SELECT} WHERE job_id = ?`, jobId)?.cancel_requested === 1 };
      });
    },

    async reports() {
      const db = await file.handle();
      return db.read((tx) => tx.all<ReportRow>(`${SELECT} ORDER BY started_at DESC, job_id`)).map(toReport);
    },

    async requestCancel(jobId) {
      return (await file.writable()).write((tx) => {
        tx.run("UPDATE index_reports SET cancel_requested = 1 WHERE job_id = ? AND status IN ('pending', 'running')", jobId);
        const found = tx.get<ReportRow>(`${SELECT} WHERE job_id = ?`, jobId);
        return found && toReport(found);
      });
    },

    async filePage({ sortBy, limit, offset, ...filter }) {
      const where = whereOf(await matchGlob(file.handle, filter));
      const from = `FROM indexed_files r WHERE ${where?.sql ?? "true"}`;
      const params = where?.params ?? [];
      return (await file.handle()).read((tx) => ({
        total: tx.get<{ total: number }>(`SELECT count(*) AS total ${from}`, ...params)!.total,
        files: tx
          .all<IndexedFile & { notice: string | null }>(
            `SELECT ${FILE} ${from} ORDER BY ${ORDER[sortBy]} LIMIT ? OFFSET ?`,
            ...params,
            limit,
            offset,
          )
          .map(({ notice, ...row }) => (notice === null ? row : { ...row, notice })),
      }));
    },
  };
}

function toReport({ body, cancel_requested }: ReportRow): StoredReport {
  return { ...(JSON.parse(body) as IndexReport), cancelRequested: cancel_requested === 1 };
}
