import { useRef, useState } from "preact/hooks";
import { Empty } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatPlural, projectName } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { hrefWith, param, project } from "../../state/route.ts";
import { useListKeys } from "../../state/use-list-keys.ts";
import { DeletedKnowledge } from "./deleted-knowledge.tsx";
import { KnowledgeRow } from "./knowledge-row.tsx";
import { type Knowledge, useKnowledge } from "./use-knowledge.ts";

const KINDS = ["skill", "remediation", "troubleshooting", "faq"] as const;
type Order = "updated_at" | "usage_count" | "success_rate";

/** Knowledge as a table: what is used, and what helps. */
export default function KnowledgePage() {
  const selected = project.value;
  const scope = selected === undefined || param("scope") === "shared" ? ("shared" as const) : ("project" as const);
  const place = scope === "shared" ? { scope } : { project_path: selected! };
  const { records, total, error, loading, reload } = useKnowledge(place, param("kind"), param("source"));
  const isDeleted = param("deleted") !== undefined;
  const [order, setOrder] = useState<Order>("updated_at");
  const table = useRef<HTMLTableElement>(null);
  useListKeys(table);
  const rows = records?.toSorted((a, b) => (a[order] < b[order] ? 1 : a[order] > b[order] ? -1 : 0));
  const header = (column: Order, text: string) => (
    <th scope="col" class={column === "updated_at" ? undefined : "number"} aria-sort={order === column ? "descending" : "none"}>
      <button type="button" class="link" onClick={() => setOrder(column)}>
        {text}
      </button>
    </th>
  );
  return (
    <>
      <div class="page-head">
        <h1>{isDeleted ? "Deleted knowledge" : "Knowledge"}</h1>
        <span class="soft">{scope === "shared" ? "shared by all projects" : projectName(selected!)}</span>
        <span class="end">
          <span class="soft">{!isDeleted && total !== undefined && formatPlural(total, "record")}</span>{" "}
          <a href={hrefWith({ deleted: isDeleted ? undefined : "1" })}>
            {isDeleted ? (
              <>
                <Icon name="back" />
                Knowledge
              </>
            ) : (
              "Deleted"
            )}
          </a>
        </span>
      </div>
      <nav class="filters" aria-label="Kinds">
        {selected !== undefined && (
          <span class="tabs">
            <a href={hrefWith({ scope: undefined })} aria-current={scope === "project" ? "true" : undefined}>
              this project
            </a>
            <a href={hrefWith({ scope: "shared" })} aria-current={scope === "shared" ? "true" : undefined}>
              shared
            </a>
          </span>
        )}
        <span class="tabs">
          {[undefined, ...KINDS].map((kind) => (
            <a key={kind ?? "all"} href={hrefWith({ kind })} aria-current={param("kind") === kind ? "true" : undefined}>
              {kind ?? "all"}
            </a>
          ))}
        </span>
        {param("source") !== undefined && (
          <a class="chip" aria-label={`Remove filter source ${param("source")}`} href={hrefWith({ source: undefined })}>
            source <b dir="auto">{param("source")}</b> <Icon name="close" />
          </a>
        )}
      </nav>
      {isDeleted && <DeletedKnowledge place={place} />}
      {error && <Failure error={error} retry={reload} />}
      {!isDeleted && rows?.length === 0 && !loading && (
        <Empty
          text="Answers that agents or people saved appear here, with how often they helped."
          command={`cairn knowledge save "How do we deploy?" "Run make deploy."${scope === "shared" ? " --scope shared" : ""}`}
        />
      )}
      {!isDeleted && rows && rows.length > 0 && (
        <div class="table" tabIndex={0} role="group" aria-label="Table">
          <table ref={table} class="knowledge" aria-busy={loading}>
            <thead>
              <tr>
                <th scope="col">Question</th>
                <th scope="col">Kind</th>
                {header("usage_count", "Used")}
                {header("success_rate", "Helped")}
                {header("updated_at", "Changed")}
              </tr>
            </thead>
            <tbody>
              {rows.map((record) => (
                <KnowledgeRow key={record.id} record={record} place={place} isOpen={param("id") === record.id} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {!isDeleted && records && <Sources records={records} />}
    </>
  );
}

/** Where the records come from: imports by their file, and what was saved by hand. */
function Sources({ records }: { readonly records: readonly Knowledge[] }) {
  const counts = new Map<string, number>();
  for (const { source } of records) if (source !== "") counts.set(source, (counts.get(source) ?? 0) + 1);
  if (counts.size === 0) return null;
  return (
    <section>
      <h2>Imports by source</h2>
      <ul class="sources">
        {[...counts].map(([source, count]) => (
          <li key={source}>
            <a href={hrefWith({ source })} dir="auto">
              {source}
            </a>
            <span class="soft">{formatPlural(count, "record")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
