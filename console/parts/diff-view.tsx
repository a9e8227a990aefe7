import { diffLines } from "./diff-lines.ts";

const SIGN = { same: " ", added: "+", removed: "−" } as const;

/** Shows which lines were removed and added. */
export function DiffView({ before, after }: { readonly before: string; readonly after: string }) {
  return (
    <div class="diff" role="group" aria-label="Difference" tabIndex={0}>
      {diffLines(before.split("\n"), after.split("\n")).map(({ kind, text }, index) => (
        <div key={index} class={kind}>
          <span aria-hidden="true">{SIGN[kind]}</span>
          {kind === "same" ? (
            <span dir="auto">{text}</span>
          ) : kind === "added" ? (
            <ins dir="auto">{text}</ins>
          ) : (
            <del dir="auto">{text}</del>
          )}
        </div>
      ))}
    </div>
  );
}
