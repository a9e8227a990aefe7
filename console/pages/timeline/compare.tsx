import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { MAX_TOKENS } from "../../api/call.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { DiffView } from "../../parts/diff-view.tsx";
import { Failure } from "../../parts/failure.tsx";
import { Time } from "../../parts/time.tsx";
import { useCall } from "../../state/use-call.ts";
import type { Checkpoint } from "./checkpoint-feed.ts";

/** The checkpoints that are marked for a comparison, at most two. */
export const compared = signal<readonly Checkpoint[]>([]);

export function toggleCompared(checkpoint: Checkpoint): void {
  const others = compared.value.filter(({ id }) => id !== checkpoint.id);
  compared.value = others.length < compared.value.length ? others : [...others, checkpoint].slice(-2);
}

/** Offers the comparison once two checkpoints are marked. */
export function CompareBar() {
  const [isOpen, setOpen] = useState(false);
  const marked = compared.value;
  if (marked.length === 0) return null;
  const [older, newer] = marked.toSorted((a, b) => a.created_at.localeCompare(b.created_at));
  return (
    <div class="compare-bar">
      <span>{marked.length === 1 ? "Mark another checkpoint to compare." : "Two checkpoints are marked."}</span>
      {newer && (
        <button type="button" class="primary" onClick={() => setOpen(true)}>
          Compare
        </button>
      )}
      <button
        type="button"
        onClick={() => {
          compared.value = [];
        }}
      >
        Clear
      </button>
      {isOpen && newer && (
        <Dialog title="Compare checkpoints" onClose={() => setOpen(false)} wide>
          <p class="soft">
            <Time at={older!.created_at} /> → <Time at={newer.created_at} />
          </p>
          <Comparison older={older!} newer={newer} />
        </Dialog>
      )}
    </div>
  );
}

function Comparison({ older, newer }: { readonly older: Checkpoint; readonly newer: Checkpoint }) {
  const inputOf = ({ project_path, id }: Checkpoint) => ({ project_path, id, max_tokens: MAX_TOKENS });
  const [before, after] = [useCall("checkpoint_get", inputOf(older)), useCall("checkpoint_get", inputOf(newer))];
  const error = before.error ?? after.error;
  if (error) return <Failure error={error} />;
  if (!before.data || !after.data) return <div class="loading" aria-busy="true" />;
  return <DiffView before={textOf(before.data)} after={textOf(after.data)} />;
}

function textOf({ summary, description, tags, context }: Checkpoint): string {
  const facts = Object.entries(context).map(([name, value]) => `${name}: ${value}`);
  return [summary, "", description, "", `tags: ${tags.join(", ")}`, ...facts].join("\n");
}
