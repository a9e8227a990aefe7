import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../frame.ts";
import { readCommits } from "../scoring/commits.ts";

/** Questions about one version of a repository, with the line ranges that answer them. Written by readers of the code. */
export interface QuestionSet {
  readonly name: string;
  /** Where the package is published. Default: npm. */
  readonly registry?: "crates.io";
  /** The package that ships the sources, the checksum of its archive, and the `folder` of the sources in it. */
  readonly package: string;
  readonly version: string;
  readonly sha256: string;
  readonly folder: string;
  readonly language: string;
  /**
   * `independent` questions were written from documentation, before the ranking was seen. `validation` questions too; no weight was chosen
   * on them. Their figures have a prefix, so that the others stay comparable.
   */
  readonly group?: "independent" | "validation" | "history";
  readonly questions: readonly Question[];
}

export interface Question {
  /** `behaviour` is worded by a newcomer to the code. `symbol` and `error` quote a name or a message. */
  readonly kind: "behaviour" | "symbol" | "error";
  readonly ask: string;
  /** `path:first-last` → 3 for the answer, 2 for a part of it, 1 for related code. */
  readonly answers: Readonly<Record<string, number>>;
  /** The weights of the ranking were tuned on one half of the questions; the other half is held out. */
  readonly part: "tuning" | "held_out";
}

export interface Answer {
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  readonly grade: number;
}

export function questionSets(): QuestionSet[] {
  const folder = join(root, "bench", "code-recall");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => {
      const set = JSON.parse(readFileSync(join(folder, file), "utf8")) as QuestionSet;
      const questions = set.questions.map((question, index) => ({
        ...question,
        part: index % 2 === 0 ? ("tuning" as const) : ("held_out" as const),
      }));
      return { ...set, name: file.slice(0, -".json".length), questions };
    });
}

/** Most files that a commit changes if its subject asks for them, and fewest words of the subject. */
const CHANGED_MAX = 2;
const SUBJECT_WORDS = 4;
const HISTORY_QUESTIONS = 150;

/**
 * Builds questions about this checkout from its history: the subject of a commit asks for the files in `folder` that the commit changed.
 * Without a history there are none.
 */
export function historyQuestions(folder: string): Pick<QuestionSet, "name" | "language" | "group" | "questions"> {
  const asked = readCommits(root).flatMap(({ subject, changed }) => {
    const paths = changed.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1));
    const exist = paths.every((path) => existsSync(join(root, folder, path)));
    if (paths.length === 0 || paths.length > CHANGED_MAX || !exist || subject.split(" ").length < SUBJECT_WORDS) return [];
    return [{ ask: subject, answers: Object.fromEntries(paths.map((path) => [`${path}:1-${LAST_LINE}`, 3])) }];
  });
  const questions = asked.slice(-HISTORY_QUESTIONS).map((question, index) => ({
    ...question,
    ...{ kind: "behaviour" as const, part: index % 2 === 0 ? ("tuning" as const) : ("held_out" as const) },
  }));
  return { name: "cairn", language: "typescript", group: "history", questions };
}

/** The end of a whole file, as an answer. */
const LAST_LINE = 1_000_000;

export function answersOf({ answers }: Question): Answer[] {
  return Object.entries(answers).map(([place, grade]) => {
    const [, path, first, last] = /^(.+):(\d+)-(\d+)$/.exec(place)!;
    return { path: path!, startLine: Number(first), endLine: Number(last), grade };
  });
}
