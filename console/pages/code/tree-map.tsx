import { formatBytes, formatPlural } from "../../parts/format.ts";
import { squarify } from "../../parts/squarify.ts";
import { go, hrefWith } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";

/** The files that are drawn: the largest. Others would be smaller than a pixel. */
const LIMIT = 300;
const WIDE = { x: 0, y: 0, width: 900, height: 240 };
/** The drawing is scaled to the page, so on a phone it has other units: its texts stay legible. */
const NARROW = { x: 0, y: 0, width: 330, height: 240 };
const DAY_MS = 86_400_000;
const AGES = [
  { days: 1, name: "today" },
  { days: 7, name: "this week" },
  { days: 30, name: "this month" },
  { days: Number.POSITIVE_INFINITY, name: "earlier" },
];

/** The largest files as areas, by language; the colour shows when a file was last indexed. */
export function TreeMap({ project, version }: { readonly project: string; readonly version: string | undefined }) {
  const { data } = useCall("code_files", { project_path: project, sort_by: "bytes", limit: LIMIT }, undefined, version);
  if (!data) return <div class="tree-map" aria-busy="true" />;
  const byLanguage = [...new Set(data.files.map(({ language }) => language))].map((language) => {
    const files = data.files.filter((file) => file.language === language);
    return { language, files, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
  });
  const drawing = matchMedia("(max-width: 40rem)").matches ? NARROW : WIDE;
  const groups = squarify(byLanguage, ({ bytes }) => bytes, drawing);
  const label = byLanguage.map(({ language, bytes }) => `${language} ${formatBytes(bytes)}`).join(", ");
  return (
    <figure class="tree-map">
      <svg viewBox={`0 0 ${drawing.width} ${drawing.height}`} role="img" aria-label={`Files by language and size: ${label}`}>
        {groups.map(({ item, ...area }) => (
          <g key={item.language}>
            {squarify(item.files, ({ bytes }) => bytes, area).map(({ item: file, x, y, width, height }) => (
              // biome-ignore lint/a11y/noStaticElementInteractions: the list of files below is the way for the keyboard
              <rect
                key={file.path}
                class={`age-${ageOf(file.indexed_at)}`}
                {...{ x, y, width, height }}
                onClick={() => go(hrefWith({ file: file.path, line: undefined, end: undefined }))}
              >
                <title>{`${file.path}\n${file.language}, ${formatBytes(file.bytes)}, indexed ${AGES[ageOf(file.indexed_at)]!.name}`}</title>
              </rect>
            ))}
            <rect class="group" x={area.x} y={area.y} width={area.width} height={area.height} />
            {squarify(item.files, ({ bytes }) => bytes, area).map(
              ({ item: { path }, x, y, width, height }) =>
                width > 8 * baseName(path).length &&
                height > 40 && (
                  <text key={path} class="name" x={x + 6} y={y + height - 8}>
                    {baseName(path)}
                  </text>
                ),
            )}
            {area.width > 60 && area.height > 18 && (
              <text x={area.x + 6} y={area.y + 15}>
                {item.language}
              </text>
            )}
          </g>
        ))}
      </svg>
      <figcaption class="soft">
        {data.files.length < data.total
          ? `The ${LIMIT} largest of ${formatPlural(data.total, "file")}, by language.`
          : "All files, by language."}{" "}
        Indexed:
        {AGES.map(({ name }, index) => (
          <span key={name} class="age">
            <i class={`age-${index}`} /> {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function ageOf(indexedAt: string): number {
  const days = (Date.now() - Date.parse(indexedAt)) / DAY_MS;
  return AGES.findIndex((age) => days < age.days);
}
