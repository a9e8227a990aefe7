import { Marked } from "./marked.tsx";

interface CodeBlockProps {
  readonly text: string;
  readonly firstLine: number;
  readonly query?: string;
  /** Lines to point out, both included. */
  readonly from?: number;
  readonly to?: number;
}

/** Code with line numbers. The numbers are not selected when the code is copied. */
export function CodeBlock({ text, firstLine, query = "", from, to }: CodeBlockProps) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <pre class="code" tabIndex={0} role="group" aria-label="Code">
      {lines.map((line, index) => {
        const number = firstLine + index;
        const isPointed = from !== undefined && number >= from && number <= (to ?? from);
        return (
          <span key={number} class={isPointed ? "line pointed" : "line"} data-line={number}>
            <Marked text={line} query={query} />
            {"\n"}
          </span>
        );
      })}
    </pre>
  );
}
