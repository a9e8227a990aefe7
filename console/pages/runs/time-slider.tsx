import { Time } from "../../parts/time.tsx";
import { useShortcuts } from "../../state/keyboard.ts";
import { setParams } from "../../state/route.ts";
import type { Step } from "./use-steps.ts";

/** Moves through the steps of a run. The newest one is the present. */
export function TimeSlider({ steps, at }: { readonly steps: readonly Step[]; readonly at: number }) {
  const index = Math.max(
    0,
    steps.findLastIndex(({ sequence }) => sequence <= at),
  );
  const move = (to: number) => {
    const step = steps[Math.min(steps.length - 1, Math.max(0, to))];
    if (step) setParams({ at: step === steps.at(-1) ? undefined : String(step.sequence) }, { replace: true });
  };
  useShortcuts([
    { keys: "[", text: "Step back in time", run: () => move(index - 1) },
    { keys: "]", text: "Step forward in time", run: () => move(index + 1) },
  ]);
  const step = steps[index];
  return (
    <div class="slider">
      <input
        type="range"
        aria-label="Time"
        aria-valuetext={step ? `step ${step.sequence}, ${step.node_id}, ${step.kind}` : undefined}
        min={0}
        max={Math.max(0, steps.length - 1)}
        value={index}
        onInput={(event) => move(Number(event.currentTarget.value))}
      />
      <span class="soft">
        {step && (
          <>
            step {step.sequence} of {steps.at(-1)?.sequence} · <Time at={step.timestamp} />
          </>
        )}
      </span>
    </div>
  );
}
