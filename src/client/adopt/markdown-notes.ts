import { ADOPT_LIMITS } from "./limits.ts";
import type { ListedFile } from "./list-files.ts";
import { readFrontMatter, splitSections } from "./markdown-sections.ts";
import { readText, timeOf } from "./read-file.ts";
import type { AdoptItem, AdoptUnit } from "./reader.ts";

export interface NotePlace {
  /** The folder of the project; absent for shared notes. */
  readonly folder?: string | undefined;
  readonly category: string;
}

/** Returns a Markdown file as a unit. Its sections are notes, and editing the file replaces them. */
export function markdownUnit(file: ListedFile, place: NotePlace): AdoptUnit {
  return {
    path: file.path,
    bytes: file.bytes,
    fingerprint: file.fingerprint,
    replaces: true,
    async *read() {
      yield* markdownNotes(await readText(file.path, ADOPT_LIMITS.noteBytes), file, place);
    },
  };
}

/** Makes the notes of a Markdown text. A note is named by the file's title and its headings; equal names are numbered. */
export function* markdownNotes(
  content: string,
  { name, modifiedAt }: Pick<ListedFile, "name" | "modifiedAt">,
  { folder, category }: NotePlace,
): Generator<AdoptItem> {
  const { fields, body } = readFrontMatter(content);
  const fileTitle = fields.title || fields.name || name.replace(/\.md$/i, "");
  const updatedAt = modifiedAt.toISOString();
  const createdAt = timeOf(fields.created) ?? timeOf(fields.date) ?? updatedAt;
  const seen = new Map<string, number>();
  for (const { headings, text } of splitSections(body, ADOPT_LIMITS.noteSections)) {
    const title = [fileTitle, ...headings.filter((heading) => heading !== fileTitle)].join(": ");
    const count = (seen.get(title) ?? 0) + 1;
    seen.set(title, count);
    yield { type: "note", key: count === 1 ? title : `${title} ${count}`, folder, title, text, category, createdAt, updatedAt };
  }
}
