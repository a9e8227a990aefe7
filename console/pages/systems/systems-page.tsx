import { seesAll } from "../../api/session.ts";
import { Empty } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatBytes } from "../../parts/format.ts";
import { hrefWith, param } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { SystemView } from "./system-view.tsx";

/** Systems: inboxes that process every message once, with their positions, dead letters and snapshots. */
export default function SystemsPage() {
  const isAllowed = seesAll();
  const { data, error, reload } = useCall("system_list", isAllowed ? {} : undefined, ({ kind }) => kind === "system");
  const chosen = param("system") ?? data?.systems[0]?.system_id;
  return (
    <>
      <div class="page-head">
        <h1>Systems</h1>
      </div>
      {!isAllowed && (
        <Empty
          text="Systems belong to no project. Sign in with a key for all projects to see them."
          command={'cairn key create "console" --access read --all-projects'}
        />
      )}
      {error && <Failure error={error} retry={reload} />}
      {data?.systems.length === 0 && (
        <Empty
          text="Systems appear here: components that process each message exactly once. docs/systems.md has one to copy."
          command="npm run example -- inbox"
        />
      )}
      {data && data.systems.length > 0 && (
        <nav class="filters" aria-label="Systems">
          <span class="tabs">
            {data.systems.map(({ system_id, size_bytes, location }) => (
              <a
                key={system_id}
                href={hrefWith({ system: system_id })}
                aria-current={system_id === chosen ? "true" : undefined}
                title={location}
              >
                {system_id}
                {size_bytes !== undefined && <span class="soft"> {formatBytes(size_bytes)}</span>}
              </a>
            ))}
          </span>
        </nav>
      )}
      {chosen !== undefined && <SystemView key={chosen} systemId={chosen} />}
    </>
  );
}
