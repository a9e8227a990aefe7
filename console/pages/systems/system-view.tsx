import { Failure } from "../../parts/failure.tsx";
import { formatBytes, formatCount, formatPlural } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { useCall } from "../../state/use-call.ts";
import { DeadLetters } from "./dead-letters.tsx";
import { Snapshots } from "./snapshots.tsx";

/** One system: its components with their ports, its dead letters and its snapshots. */
export function SystemView({ systemId }: { readonly systemId: string }) {
  const { data, error, reload } = useCall("system_get", { system_id: systemId }, ({ kind }) => kind === "system");
  if (error) return <Failure error={error} retry={reload} />;
  return (
    <>
      <section aria-label="Components">
        <h2>Components and ports</h2>
        <div class="table" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                <th scope="col">Component</th>
                <th scope="col">Port</th>
                <th scope="col" class="number" title="The highest offset before which every message is done">
                  Position
                </th>
                <th scope="col" class="number">
                  Highest
                </th>
                <th scope="col" class="number">
                  Pending
                </th>
                <th scope="col" class="number">
                  Done
                </th>
                <th scope="col" class="number">
                  Dead
                </th>
              </tr>
            </thead>
            <tbody>
              {data?.components.flatMap(({ component, ports, state_keys, state_bytes, updated_at }) =>
                ports.map(({ port, position, highest, pending, done, dead }, index) => (
                  <tr key={`${component}/${port}`}>
                    <td>
                      {index === 0 && (
                        <>
                          <b>{component}</b>
                          <div class="soft">
                            {formatPlural(state_keys, "key")}, {formatBytes(state_bytes)}, <Time at={updated_at} />
                          </div>
                        </>
                      )}
                    </td>
                    <td>{port}</td>
                    <td class="number">{formatCount(position)}</td>
                    <td class="number">{formatCount(highest)}</td>
                    <td class="number">{pending > 0 ? <span class="badge warn">{formatCount(pending)}</span> : 0}</td>
                    <td class="number">{formatCount(done)}</td>
                    <td class="number">{dead > 0 ? <span class="badge bad">{formatCount(dead)}</span> : 0}</td>
                  </tr>
                )),
              )}
            </tbody>
          </table>
        </div>
      </section>
      <DeadLetters systemId={systemId} onChange={reload} />
      <Snapshots systemId={systemId} onChange={reload} />
    </>
  );
}
