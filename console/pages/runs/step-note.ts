/** Returns the note of a step as a person reads it: the reason of a failure, the question of a pause, its last answer, or the note itself. */
export function noteOf(note: string, isAnswer = false): string {
  const parsed = parse(note);
  if (typeof parsed !== "object" || parsed === null) return note;
  if (isAnswer && "answers" in parsed && Array.isArray(parsed.answers)) return questionText(parsed.answers.at(-1));
  if ("message" in parsed) return String(parsed.message);
  if ("question" in parsed) return questionText(parsed.question);
  return note;
}

/** Returns the step to which a rewind set the run back. */
export function sequenceOf(note: string): string {
  const parsed = parse(note);
  return typeof parsed === "object" && parsed !== null && "sequence" in parsed ? String(parsed.sequence) : "?";
}

/** Returns the question of a pause as text: programs ask with a text, or with an object that has one. */
export function questionText(question: unknown): string {
  if (typeof question === "string") return question;
  if (typeof question === "object" && question !== null && "question" in question) return questionText(question.question);
  return JSON.stringify(question);
}

function parse(note: string): unknown {
  try {
    return JSON.parse(note);
  } catch {
    return undefined;
  }
}
