import { call } from "../../api/call.ts";
import { confirm } from "../../parts/confirm.tsx";
import { Command } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { projectName } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";

/** API keys: who may do what, in which projects. A new key is made on the command line, where its secret is shown once. */
export function Keys() {
  const { data, error, reload } = useCall("key_list", {});
  const revoke = async (id: string, label: string) => {
    if (
      !(await confirm(
        "Revoke this key?",
        `Calls with the key «${label}» are refused from the next request on. This cannot be undone.`,
        "Revoke",
      ))
    )
      return;
    if (!(await attempt(() => call("key_revoke", { id })))) return;
    notify("Key revoked.");
    reload();
  };
  return (
    <section aria-label="Keys">
      <h2>Keys</h2>
      {error && <Failure error={error} retry={reload} />}
      {data?.keys.length === 0 && (
        <>
          <p class="soft">None. Other people and machines need one:</p>
          <Command text={'cairn key create "build server" --access write --projects /home/me/project'} />
        </>
      )}
      <ul class="list">
        {data?.keys.map(({ id, label, access, all_projects, projects, created_at, expires_at }) => (
          <li key={id}>
            <div class="grow">
              <b dir="auto">{label}</b> <span class="badge">{access}</span>{" "}
              <span class="soft">
                {all_projects ? "all projects" : projects.map(projectName).join(", ")}, created <Time at={created_at} />
                {expires_at !== undefined && (
                  <>
                    , expires <Time at={expires_at} />
                  </>
                )}
              </span>{" "}
              <code class="soft">{id}</code>
            </div>
            <button type="button" onClick={() => revoke(id, label)}>
              Revoke
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
