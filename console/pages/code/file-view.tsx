import { useState } from "preact/hooks";
import { CodeBlock } from "../../parts/code-block.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatPlural } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Time } from "../../parts/time.tsx";
import { hrefWith, param } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { SimilarCode } from "./similar-code.tsx";
import { Usages } from "./usages.tsx";

const AROUND = 30;

/** Code of a file around a line, with the usages of a symbol and similar code. */
export function FileView({ project, path }: { readonly project: string; readonly path: string }) {
  const line = Number(param("line") ?? 1);
  const end = Number(param("end") ?? line);
  const [symbol, setSymbol] = useState("");
  const [showSimilar, setSimilar] = useState(false);
  const range = { start_line: Math.max(1, line - AROUND), end_line: end + AROUND };
  const { data, error, reload } = useCall("code_context", { project_path: project, path, ...range });
  const found = data?.contexts[0];
  const chosen = () => setSymbol((getSelection()?.toString() ?? "").trim().slice(0, 100));
  return (
    <section class="file" aria-label="Code view">
      <p class="row-actions">
        <a href={hrefWith({ file: undefined, line: undefined, end: undefined })}>
          <Icon name="back" />
          Back
        </a>
        <b dir="auto">{path}</b>
        <CopyButton text={() => path} label="Copy path" />
        {found && (
          <span class="soft">
            {found.language}, lines {found.start_line} to {found.end_line}, indexed <Time at={found.indexed_at} />
          </span>
        )}
        {found?.stale && <span class="badge warn">changed since indexing</span>}
        <button type="button" aria-pressed={showSimilar} onClick={() => setSimilar(!showSimilar)}>
          Similar code
        </button>
      </p>
      {error && <Failure error={error} retry={reload} />}
      {found && (
        // biome-ignore lint/a11y/noStaticElementInteractions: selecting text is a shortcut for the field below
        <div onMouseUp={chosen}>
          <CodeBlock text={found.text} firstLine={found.start_line} from={line} to={end} />
        </div>
      )}
      {data?.contexts.length === 0 && <p class="soft">{data.note ?? "This file is not indexed."}</p>}
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Usages of
          <input
            type="text"
            placeholder="a name; select it above"
            value={symbol}
            onInput={(event) => setSymbol(event.currentTarget.value.trim())}
          />
        </label>
      </form>
      {/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(symbol) && <Usages project={project} symbol={symbol} />}
      {showSimilar && <SimilarCode project={project} path={path} line={line} />}
      {data && data.contexts.length > 1 && <p class="soft">{formatPlural(data.contexts.length - 1, "further part")} of this file</p>}
    </section>
  );
}
