/**
 * Who may see a planted text: every caller for all projects, these and administrators of a project, only administrators
 * of all projects, or nobody.
 */
export type Audience = "all-projects" | "operators" | "administrators" | "nobody";

/** A unique text planted where only its audience may read it. Finding it in any other answer proves a leak. */
export interface Canary {
  readonly kind: string;
  readonly text: string;
  readonly audience: Audience;
}

const SYLLABLES = ["ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "po", "ra", "se", "ti", "vo", "xe", "ya", "zu"];

/** Makes a pronounceable token that no redaction rule takes for a secret and that full-text search keeps whole. */
export function canaryText(kind: string, digest: (text: string) => string): string {
  const bytes = [...digest(kind).slice(0, 8)];
  return `zq${bytes.map((hex) => SYLLABLES[Number.parseInt(hex, 16)]).join("")}`;
}

/** Finds canaries in the bytes of an answer: as text in any case, in base64 at any alignment, and in hexadecimal. */
export function canaryFinder(canaries: readonly Canary[]): (answer: string) => Canary[] {
  const forms = canaries.map((canary) => ({ canary, insensitive: insensitiveForms(canary.text), base64: base64Forms(canary.text) }));
  return (answer) => {
    const lower = answer.toLowerCase();
    return forms
      .filter(({ insensitive, base64 }) => insensitive.some((form) => lower.includes(form)) || base64.some((form) => answer.includes(form)))
      .map(({ canary }) => canary);
  };
}

/** Lists the canaries that a request names itself, in any spelling: an echo of what the caller sent is no leak. */
export function namedBy(request: string, find: (text: string) => readonly Canary[]): Set<Canary> {
  const spellings = [
    request,
    percentDecoded(request),
    percentDecoded(percentDecoded(request)),
    request.replaceAll(/\\u00([0-9a-f]{2})/gi, escaped),
  ];
  return new Set(spellings.flatMap((spelling) => find(spelling.normalize("NFKC"))));
}

function insensitiveForms(text: string): string[] {
  return [text.toLowerCase(), Buffer.from(text).toString("hex"), [...text.toLowerCase()].join("\u0000")];
}

/** Base64 depends on the position modulo three: the characters that are the same at each position are searched for. */
function base64Forms(text: string): string[] {
  return [0, 1, 2].map((shift) => {
    const encoded = Buffer.from("\u0000".repeat(shift) + text).toString("base64");
    const whole = Math.floor(((shift + text.length) * 8) / 6);
    return encoded.slice(Math.ceil((shift * 8) / 6), whole);
  });
}

function percentDecoded(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll("%", ""), "hex").toString("utf8"));
}

function escaped(_: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16));
}
