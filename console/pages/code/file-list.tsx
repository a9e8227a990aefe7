import { useEffect, useState } from "preact/hooks";
import { Failure } from "../../parts/failure.tsx";
import { formatBytes, formatCount } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { hrefWith } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";

const PAGE = 25;
const TYPING_MS = 300;
const SORTS = { path: "path", bytes: "largest first", indexed_at: "last indexed first" } as const;

/** The indexed files with size, language and time. A file that was indexed in part shows why. */
export function FileList({ project, version }: { readonly project: string; readonly version: string | undefined }) {
  const [text, setText] = useState("");
  const [glob, setGlob] = useState<string>();
  const [sort, setSort] = useState<keyof typeof SORTS>("path");
  const [limit, setLimit] = useState(PAGE);
  useEffect(() => {
    const timer = setTimeout(() => setGlob(globOf(text.trim())), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const input = { project_path: project, sort_by: sort, limit, ...(glob !== undefined && { glob }) };
  const { data, error, reload } = useCall("code_files", input, undefined, version);
  return (
    <section aria-label="Indexed files">
      <h2>Indexed files</h2>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <input
          type="search"
          aria-label="Find an indexed file"
          placeholder="A part of the path, or a glob such as src/**"
          maxLength={300}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <select aria-label="Order of files" value={sort} onChange={(event) => setSort(event.currentTarget.value as keyof typeof SORTS)}>
          {Object.entries(SORTS).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </form>
      {error && <Failure error={error} retry={reload} />}
      {data?.total === 0 && <p class="soft">No indexed file fits.</p>}
      {data && data.total > 0 && (
        <div class="table" tabIndex={0} role="group" aria-label="Table of files">
          <table class="files">
            <thead>
              <tr>
                <th>File</th>
                <th>Language</th>
                <th class="number">Size</th>
                <th>Indexed</th>
              </tr>
            </thead>
            <tbody>
              {data.files.map(({ path, language, bytes, lines, indexed_at, notice }) => (
                <tr key={path}>
                  <td>
                    <a dir="auto" href={hrefWith({ file: path, line: undefined, end: undefined })}>
                      {path}
                    </a>
                    {notice !== undefined && <span class="badge warn">{notice}</span>}
                  </td>
                  <td>{language}</td>
                  <td class="number" title={`${formatCount(lines)} lines`}>
                    {formatBytes(bytes)}
                  </td>
                  <td>
                    <Time at={indexed_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data && data.files.length < data.total && (
        <p class="gap-small">
          <button type="button" onClick={() => setLimit(Math.min(1_000, limit + 100))} disabled={limit >= 1_000}>
            Show more
          </button>{" "}
          <span class="soft">
            {formatCount(data.files.length)} of {formatCount(data.total)}
          </span>
        </p>
      )}
    </section>
  );
}

/** Returns the glob for what was typed: itself, or every path that contains it. */
function globOf(text: string): string | undefined {
  if (text === "") return undefined;
  return /[*?{}!]/.test(text) ? text : `**${text}**`;
}
