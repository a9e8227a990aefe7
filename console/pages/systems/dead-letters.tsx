import { call, type Output } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { Failure } from "../../parts/failure.tsx";
import { formatPlural } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";

type DeadLetter = Output<"system_dead_letters">["dead_letters"][number];

/** Messages that failed too often. Requeued ones are processed again by the program that owns the system. */
export function DeadLetters({ systemId, onChange }: { readonly systemId: string; readonly onChange: () => void }) {
  const { data, error, reload } = useCall(
    "system_dead_letters",
    { system_id: systemId, include_data: true, limit: 100 },
    ({ kind }) => kind === "system",
  );
  const requeue = async ({ component, port, id }: DeadLetter) => {
    if (!(await attempt(() => call("system_requeue", { system_id: systemId, component, port, ids: [id] })))) return;
    notify(`Message ${id} requeued. It is pending again.`);
    reload();
    onChange();
  };
  return (
    <section aria-label="Dead letters">
      <h2>Dead letters</h2>
      {error && <Failure error={error} retry={reload} />}
      {data?.dead_letters.length === 0 && <p class="soft">None. Messages that fail too often come here, with the reason.</p>}
      <ul class="list">
        {data?.dead_letters.map((letter) => (
          <li key={`${letter.component}/${letter.port}/${letter.id}`}>
            <div class="grow">
              <b dir="auto">{letter.id}</b>{" "}
              <span class="soft">
                {letter.component}/{letter.port}, offset {letter.offset}, {formatPlural(letter.attempts, "attempt")},{" "}
                <Time at={letter.received_at} />
              </span>
              <p class="problem" dir="auto">
                {letter.reason}
              </p>
              {letter.data_json !== undefined && <code class="soft">{letter.data_json.slice(0, 500)}</code>}
            </div>
            {may("system_requeue") && (
              <button type="button" onClick={() => requeue(letter)}>
                Requeue
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
