import { LIMITS } from "../../model/limits.ts";
import { clip, clipLine } from "../../text/clip.ts";
import type { Redact } from "../../text/redact.ts";
import { isBlank } from "../../text/untrusted.ts";
import { noteId } from "./adopted-id.ts";
import type { AdoptTool, NoteItem } from "./reader.ts";

/** A knowledge record in the form that `knowledge_import` takes. */
export interface NoteRecord {
  readonly id: string;
  readonly kind: "skill";
  readonly category: string;
  readonly subcategory: string;
  readonly question: string;
  readonly answer: string;
  readonly created_at: string;
  readonly updated_at: string;
}

const QUESTION_CHARS = 400;
/** Parts of one note. A longer note is cut. */
const PARTS = 20;
/** A part ends at a line break within this share of the limit. */
const BREAK_SHARE = 0.5;

/** Makes the knowledge records of a note: one, or several numbered ones if the text exceeds the limit of an answer. */
export function noteRecords(tool: AdoptTool, path: string, note: NoteItem, redact: Redact): NoteRecord[] {
  const text = clip(redact, note.text, LIMITS.answerChars * PARTS);
  const title = clipLine(redact, note.title, QUESTION_CHARS);
  if (isBlank(text)) return [];
  const parts = splitText(text, LIMITS.answerChars - 1_000); // redaction in the service may lengthen a text
  return parts.map((answer, index) => ({
    id: noteId(tool, path, index === 0 ? note.key : `${note.key} part ${index + 1}`),
    kind: "skill",
    category: clipLine(redact, note.category, LIMITS.categoryChars),
    subcategory: tool,
    question: isBlank(title) ? "Note" : index === 0 ? title : `${title} (part ${index + 1})`,
    answer,
    created_at: note.createdAt,
    updated_at: note.updatedAt ?? note.createdAt,
  }));
}

function splitText(text: string, limit: number): string[] {
  const parts: string[] = [];
  for (let rest = text; rest !== ""; ) {
    const lineEnd = rest.length > limit ? rest.lastIndexOf("\n", limit) : rest.length;
    const end = lineEnd >= limit * BREAK_SHARE || rest.length <= limit ? lineEnd : limit;
    const part = rest.slice(0, end).trim().toWellFormed();
    if (!isBlank(part)) parts.push(part);
    rest = rest.slice(end).trimStart();
  }
  return parts;
}
