/** A part of a Markdown file under one heading. */
export interface MarkdownSection {
  /** The headings above the text, the outermost first. */
  readonly headings: readonly string[];
  readonly text: string;
}

export interface MarkdownFile {
  /** Values of the front matter that are one line of text. */
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string;
}

const FRONT_MATTER_LINES = 200;
/** Shorter files stay one section. */
const WHOLE_CHARS = 1_500;

/** Separates the front matter from the body. Nested values are left out: YAML is not interpreted. */
export function readFrontMatter(content: string): MarkdownFile {
  const lines = content.split("\n", FRONT_MATTER_LINES).map((line) => line.trimEnd());
  const end = lines[0] === "---" ? lines.indexOf("---", 1) : -1;
  if (end === -1) return { fields: {}, body: content };
  const fields = new Map<string, string>();
  for (const line of lines.slice(1, end)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (/^[\w-]{1,50}$/.test(name))
      fields.set(
        name,
        line
          .slice(colon + 1)
          .trim()
          .replace(/^(["'])(.*)\1$/, "$2"),
      );
  }
  return {
    fields: Object.fromEntries(fields),
    body: content
      .split("\n")
      .slice(end + 1)
      .join("\n"),
  };
}

/** Splits a body at headings of the first two levels. A short body stays whole. Headings in code blocks are text. */
export function splitSections(body: string, limit: number): MarkdownSection[] {
  const sections: { headings: string[]; lines: string[] }[] = [{ headings: [], lines: [] }];
  let title: string | undefined;
  let fence: string | undefined;
  for (const line of body.split("\n")) {
    const mark = /^ {0,3}(```|~~~)/.exec(line)?.[1];
    if (mark !== undefined && (fence === undefined || fence === mark)) fence = fence === undefined ? mark : undefined;
    const heading = fence === undefined ? /^(#{1,2}) +(\S.*)$/.exec(line) : null;
    if (heading && sections.length < limit) {
      const [, level, text = ""] = heading;
      if (level === "#") title = text.trim();
      sections.push({ headings: level === "#" ? [text.trim()] : [...(title === undefined ? [] : [title]), text.trim()], lines: [] });
    } else sections.at(-1)!.lines.push(line);
  }
  const filled = sections.map(({ headings, lines }) => ({ headings, text: lines.join("\n").trim() })).filter(({ text }) => text !== "");
  if (body.length > WHOLE_CHARS || filled.length < 2) return filled;
  const [first] = filled;
  return [{ headings: first!.headings.slice(0, 1), text: body.trim() }];
}
