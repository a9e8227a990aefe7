import { useState } from "preact/hooks";
import { call, type Output } from "../../api/call.ts";
import { Command } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatBytes, formatPlural } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { attempt } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";
import { Backups } from "./backups.tsx";

type Report = Output<"doctor">;

/** What the doctor found, and the databases with their sizes. Checks that read every record run on request. */
export function Findings() {
  const quick = useCall("doctor", { quick: true });
  const [full, setFull] = useState<Report>();
  const [isBusy, setBusy] = useState(false);
  const report = full ?? quick.data;
  const examine = async () => {
    setBusy(true);
    await attempt(async () => setFull(await call("doctor", {})));
    setBusy(false);
  };
  return (
    <>
      <section aria-label="Doctor">
        <h2>Doctor</h2>
        {quick.error && <Failure error={quick.error} retry={quick.reload} />}
        {!report && !quick.error && <p class="soft">Examining…</p>}
        {report && (
          <>
            <p class="row-actions">
              <span class={report.healthy ? "badge good" : "badge bad"}>{report.healthy ? "healthy" : "needs attention"}</span>
              <span class="soft">
                {full ? "all checks" : "quick checks"}, <Time at={report.checked_at} />
              </span>
              <button type="button" disabled={isBusy} onClick={examine}>
                {isBusy ? "Checking…" : "Run all checks"}
              </button>
            </p>
            {report.findings.length === 0 && <p class="soft">No problems found in {formatPlural(report.checks.length, "check")}.</p>}
            <ul class="list">
              {report.findings.map(({ check, severity, subject, message, command }) => (
                <li key={`${check}${subject}${message}`}>
                  <div class="grow">
                    <span class={severity === "problem" ? "badge bad" : "badge"}>{check}</span> <span class="soft">{subject}</span>
                    <p dir="auto">{message}</p>
                    {command !== undefined && <Command text={command} />}
                  </div>
                </li>
              ))}
            </ul>
          </>
        )}
      </section>
      {report && <Databases report={report} />}
      {report && <Backups isServer={report.versions.database.startsWith("PostgreSQL")} />}
    </>
  );
}

function Databases({ report: { databases, versions } }: { readonly report: Report }) {
  return (
    <section aria-label="Databases">
      <h2>Databases</h2>
      <p class="soft">
        {versions.database}, Node {versions.node}
      </p>
      <div class="table" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>
            <tr>
              <th scope="col">Database</th>
              <th scope="col">Kind</th>
              <th scope="col" class="number">
                Size
              </th>
            </tr>
          </thead>
          <tbody>
            {databases
              .toSorted((a, b) => b.bytes - a.bytes)
              .map(({ kind, id, location, bytes }) => (
                <tr key={kind + id}>
                  <td title={location} dir="auto">
                    {id}
                  </td>
                  <td class="soft">{kind}</td>
                  <td class="number">{formatBytes(bytes)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
