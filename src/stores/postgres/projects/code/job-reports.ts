import type { IndexedFile } from "../../../../model/code-index.ts";
import { type IndexReport, REPORTS_KEPT, type StoredReport } from "../../../../model/index-report.ts";
import type { CodeJobStore, FilePageQuery } from "../../../../ports/code-store.ts";
import type { PartTables } from "../project-tables.ts";
import { conditions } from "./filter.ts";

interface ReportRow {
  readonly body: string;
  readonly cancel_requested: boolean;
}

export const FILE =
  'file_path AS path, content_hash AS "contentHash", generation, indexed_at AS "indexedAt", language, bytes, lines, notice';
const ORDER: Readonly<Record<FilePageQuery["sortBy"], string>> = {
  path: "file_path",
  bytes: "bytes DESC, file_path",
  indexed_at: "indexed_at DESC, file_path",
};
const SELECT = "SELECT body, cancel_requested FROM index_reports";
const OLD = 'SELECT job_id FROM index_reports ORDER BY started_at DESC, job_id COLLATE "C" OFFSET $1';

/** The reports of index jobs in the schema of a project, and its list of indexed files. */
export function postgresJobReports(part: PartTables): CodeJobStore {
  return {
    report: (report) =>
      part.write(
        async (tx) => {
          const { jobId, startedAt, updatedAt, status } = report;
          const row = await tx.get<ReportRow>(
            `INSERT INTO index_reports (job_id, started_at, updated_at, status, body) VALUES ($1, $2::timestamptz, $3::timestamptz, $4, $5)
               ON CONFLICT (job_id) DO UPDATE SET updated_at = excluded.updated_at, status = excluded.status, body = excluded.body
               RETURNING body, cancel_requested`,
            ...[jobId, startedAt, updatedAt, status, JSON.stringify(report)],
          );
          await tx.run(`DELETE FROM index_reports WHERE job_id IN (${OLD})`, REPORTS_KEPT);
          return { cancelRequested: row!.cancel_requested };
        },
        { idempotent: true },
      ),

    async reports() {
      const rows = await part.read<ReportRow[]>([], (tx) => tx.all(`${SELECT} ORDER BY started_at DESC, job_id COLLATE "C"`));
      return rows.map(toReport);
    },

    requestCancel: (jobId) =>
      part.change<StoredReport | undefined>(
        undefined,
        async (tx) => {
          await tx.run("UPDATE index_reports SET cancel_requested = true WHERE job_id = $1 AND status IN ('pending', 'running')", jobId);
          const found = await tx.get<ReportRow>(`${SELECT} WHERE job_id = $1`, jobId);
          return found && toReport(found);
        },
        { idempotent: true },
      ),

    filePage: ({ sortBy, limit, offset, ...filter }) =>
      part.read<{ total: number; files: IndexedFile[] }>({ total: 0, files: [] }, async (tx) => {
        const where = (await conditions(tx, filter))(1);
        const from = `FROM indexed_files r WHERE ${where?.sql ?? "true"}`;
        const params = where?.params ?? [];
        const page = `LIMIT $${params.length + 1} OFFSET $${params.length + 2}`;
        const { total } = (await tx.get<{ total: number }>(`SELECT count(*) AS total ${from}`, ...params))!;
        const rows = await tx.all<IndexedFile & { notice: string | null }>(
          `SELECT ${FILE} ${from} ORDER BY ${ORDER[sortBy]} ${page}`,
          ...params,
          limit,
          offset,
        );
        return { total, files: rows.map(({ notice, ...file }) => (notice === null ? file : { ...file, notice })) };
      }),
  };
}

function toReport({ body, cancel_requested }: ReportRow): StoredReport {
  return { ...(JSON.parse(body) as IndexReport), cancelRequested: cancel_requested };
}
