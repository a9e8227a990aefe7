import { Failure } from "../../parts/failure.tsx";
import { formatPlural } from "../../parts/format.ts";
import { hrefWith } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";

/** Where a name is defined and used. */
export function Usages({ project, symbol }: { readonly project: string; readonly symbol: string }) {
  const { data, error, reload } = useCall("code_usages", { project_path: project, symbol, limit: 50 });
  if (error) return <Failure error={error} retry={reload} />;
  if (!data) return null;
  const places = [
    ...data.definitions.map((place) => ({ ...place, is: "defines" })),
    ...data.references.map((place) => ({ ...place, is: "uses" })),
  ];
  return (
    <section aria-label="Usages">
      <h2>
        Usages of {symbol} <span class="soft">{formatPlural(data.total_references, "reference")}</span>
      </h2>
      {places.length === 0 && <p class="soft">No definition and no use of this name is indexed.</p>}
      <ul class="list">
        {places.map(({ path, line, text, is }) => (
          <li key={`${is}${path}:${line}`}>
            <span class="badge">{is}</span>
            <a href={hrefWith({ file: path, line: String(line), end: undefined })}>
              {path}:{line}
            </a>
            <code class="grow">{text.trim()}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}
