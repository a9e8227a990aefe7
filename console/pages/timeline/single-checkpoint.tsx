import { useEffect, useRef } from "preact/hooks";
import { MAX_TOKENS } from "../../api/call.ts";
import { emit } from "../../api/events.ts";
import { Failure } from "../../parts/failure.tsx";
import { hrefWith, param, project, setParams } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { CheckpointCard } from "./checkpoint-card.tsx";

/** The checkpoint that the address names, above the list. */
export function SingleCheckpoint() {
  const id = param("id");
  const project_path = project.value;
  const isNamed = id !== undefined && project_path !== undefined;
  const { data, error } = useCall(
    "checkpoint_get",
    isNamed ? { project_path, id, max_tokens: MAX_TOKENS } : undefined,
    (event) => event.id === id,
  );
  const section = useRef<HTMLElement>(null);
  // Whoever opened it continues there, also by keyboard.
  useEffect(() => section.current?.focus(), [data?.id === id]);
  if (!isNamed) return null;
  if (error) return <Failure error={error} retry={() => setParams({ id: undefined })} />;
  if (!data || data.id !== id) return null;
  return (
    <section ref={section} class="single" aria-label="Selected checkpoint" tabIndex={-1}>
      <CheckpointCard
        checkpoint={data}
        isOpen
        onChange={(action) => {
          emit({ kind: "checkpoint", action, project: project_path, id });
          if (action === "deleted") setParams({ id: undefined });
        }}
      />
      <a href={hrefWith({ id: undefined })}>Back to all checkpoints</a>
    </section>
  );
}
