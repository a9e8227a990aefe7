import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { confirm } from "../../parts/confirm.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatBytes, formatPlural } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";

/** Snapshots of a system: make one, check one, go back to one. */
export function Snapshots({ systemId, onChange }: { readonly systemId: string; readonly onChange: () => void }) {
  const { data, error, reload } = useCall("system_snapshots", { system_id: systemId }, ({ kind }) => kind === "system");
  const [verified, setVerified] = useState<Readonly<Record<string, string>>>({});
  const verify = (snapshot_id: string) =>
    attempt(async () => {
      const { snapshots } = await call("system_verify", { system_id: systemId, snapshot_id, level: "full" });
      const problems = snapshots.flatMap(({ problems: found }) => found);
      setVerified((others) => ({ ...others, [snapshot_id]: problems.length === 0 ? "sound" : problems.join("; ") }));
    });
  const restore = async (snapshot_id: string) => {
    const text = `The state of ${systemId} goes back to this snapshot. Later messages are processed again when their source repeats them.`;
    if (!(await confirm("Restore this snapshot?", text, "Restore"))) return;
    if (!(await attempt(() => call("system_restore", { system_id: systemId, snapshot_id })))) return;
    notify("Snapshot restored.");
    onChange();
  };
  const take = async () => {
    if (!(await attempt(() => call("system_snapshot", { system_id: systemId })))) return;
    notify("Snapshot taken.");
    reload();
  };
  return (
    <section aria-label="Snapshots">
      <h2>Snapshots</h2>
      {error && <Failure error={error} retry={reload} />}
      {data?.snapshots.length === 0 && <p class="soft">None yet. The program that owns the system takes one every minute.</p>}
      <ul class="list">
        {data?.snapshots.map(({ id, created_at, complete, components, messages, bytes, mode }) => (
          <li key={id}>
            <div class="grow">
              <b>
                <Time at={created_at} />
              </b>{" "}
              <span class="soft">
                {mode}, {formatPlural(components, "component")}, {formatPlural(messages, "message")}, {formatBytes(bytes)}
              </span>{" "}
              {!complete && <span class="badge bad">incomplete</span>}
              {verified[id] !== undefined && <span class={verified[id] === "sound" ? "badge good" : "badge bad"}>{verified[id]}</span>}
            </div>
            <button type="button" onClick={() => verify(id)}>
              Verify
            </button>
            {may("system_restore") && (
              <button type="button" onClick={() => restore(id)}>
                Restore
              </button>
            )}
          </li>
        ))}
      </ul>
      {may("system_snapshot") && (
        <p class="gap-small">
          <button type="button" onClick={take}>
            Take a snapshot
          </button>
        </p>
      )}
    </section>
  );
}
