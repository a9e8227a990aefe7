import { CopyButton } from "../../parts/copy-button.tsx";
import { formatCount } from "../../parts/format.ts";
import { useCall } from "../../state/use-call.ts";

/** What the next session of an agent receives when it starts in the project. */
export function SessionPreview({ project }: { readonly project: string }) {
  const { data } = useCall(
    "session_preview",
    { project_path: project },
    (event) => event.kind === "checkpoint" && event.project === project,
  );
  const text = data?.text;
  if (text === undefined) return null;
  return (
    <section class="panel preview" aria-label="What the next session receives">
      <details>
        <summary data-row>
          <b>What the next session receives at its start</b> <span class="soft">about {formatCount(data!.tokens)} tokens</span>
        </summary>
        <pre dir="auto" tabIndex={0}>
          {text}
        </pre>
        <CopyButton text={() => text} label="Copy text" />
      </details>
    </section>
  );
}
