import { useState } from "preact/hooks";
import { Time } from "../../parts/time.tsx";
import { KnowledgeDetails } from "./knowledge-details.tsx";
import type { Knowledge, Place } from "./use-knowledge.ts";

interface KnowledgeRowProps {
  readonly record: Knowledge;
  readonly place: Place;
  readonly isOpen: boolean;
}

/** One record. Its answer and its actions fold out below. */
export function KnowledgeRow({ record, place, isOpen }: KnowledgeRowProps) {
  const [open, setOpen] = useState(isOpen);
  const { question, kind, category, usage_count, successes, success_rate, updated_at } = record;
  return (
    <>
      <tr>
        <td>
          <button type="button" class="row-head" data-row aria-expanded={open} onClick={() => setOpen(!open)} dir="auto">
            {question}
          </button>
        </td>
        <td class="soft">
          {kind}
          {category !== "" && <div dir="auto">{category}</div>}
        </td>
        <td class="number">
          {usage_count} <span class="unit">{usage_count === 1 ? "use" : "uses"}</span>
        </td>
        <td class="number" title={`${successes} of ${usage_count} uses helped; smoothed rate ${success_rate.toFixed(2)}`}>
          {usage_count === 0 ? <span class="soft">not used</span> : <Rate value={success_rate} />}
        </td>
        <td class="soft">
          <Time at={updated_at} />
        </td>
      </tr>
      {open && (
        <tr class="details">
          <td colSpan={5}>
            <KnowledgeDetails record={record} place={place} />
          </td>
        </tr>
      )}
    </>
  );
}

function Rate({ value }: { readonly value: number }) {
  return (
    <span class="rate">
      <span class="track good" aria-hidden="true">
        <span style={{ width: `${Math.round(value * 100)}%` }} />
      </span>
      {Math.round(value * 100)} %
    </span>
  );
}
