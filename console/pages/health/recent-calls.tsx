import { useState } from "preact/hooks";
import { Failure } from "../../parts/failure.tsx";
import { Time } from "../../parts/time.tsx";
import { useCall } from "../../state/use-call.ts";

const LIMIT = 20;

/** The last calls that the server answered, with their duration and error. */
export function RecentCalls() {
  const [failed, setFailed] = useState(false);
  const { data, error, reload } = useCall("call_list", { limit: LIMIT, failed });
  return (
    <section aria-label="Recent calls">
      <h2>Recent calls</h2>
      <p class="row-actions">
        <label>
          <input type="checkbox" checked={failed} onChange={(event) => setFailed(event.currentTarget.checked)} /> only failures
        </label>
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </p>
      {error && <Failure error={error} retry={reload} />}
      {data?.calls.length === 0 && <p class="soft">{failed ? "No call failed." : "Calls over HTTP and MCP appear here."}</p>}
      {data && data.calls.length > 0 && (
        <div class="table" tabIndex={0} role="group" aria-label="Table of calls">
          <table>
            <thead>
              <tr>
                <th scope="col">Operation</th>
                <th scope="col">By</th>
                <th scope="col" class="number">
                  Duration
                </th>
                <th scope="col">Result</th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>
              {data.calls.map(({ at, operation, edge, duration_ms, error: code, key_id }, index) => (
                <tr key={`${at}${index}`}>
                  <td>{operation}</td>
                  <td class="soft" title={key_id === undefined ? "the local user" : `API key ${key_id}`}>
                    {edge}
                  </td>
                  <td class="number">{duration_ms < 10 ? duration_ms.toFixed(1) : Math.round(duration_ms)} ms</td>
                  <td>{code === undefined ? "ok" : <span class="badge bad">{code}</span>}</td>
                  <td>
                    <Time at={at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
