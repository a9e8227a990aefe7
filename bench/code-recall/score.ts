import { ndcg10 } from "../scoring/ndcg.ts";
import { answersOf, type Question } from "./question-set.ts";

export interface Scores {
  /** nDCG of the files, each at its first hit. */
  readonly ndcg10: number;
  /** Reciprocal rank of the first file that answers. */
  readonly mrr: number;
  /** Whether the first file has the highest gain. */
  readonly top1: number;
}

export function scoreFiles(question: Question, paths: readonly string[]): Scores {
  const grades = new Map<string, number>();
  for (const { path, grade } of answersOf(question)) grades.set(path, Math.max(grade, grades.get(path) ?? 0));
  const gains = [...new Set(paths)].slice(0, 10).map((path) => grades.get(path) ?? 0);
  const first = gains.findIndex((gain) => gain >= 2);
  return {
    ndcg10: ndcg10(gains, [...grades.values()]),
    mrr: first < 0 ? 0 : 1 / (first + 1),
    top1: gains[0] === Math.max(...grades.values()) ? 1 : 0,
  };
}

export interface Place {
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
}

/** Of the places themselves. Each answer counts once: of two hits in the same function the second brings nothing new. */
export function scorePlaces(question: Question, hits: readonly Place[]): number {
  const open = answersOf(question).sort((a, b) => b.grade - a.grade);
  const relevant = open.map(({ grade }) => grade);
  const gains = hits.slice(0, 10).map((hit) => {
    const at = open.findIndex(({ path, startLine, endLine }) => path === hit.path && startLine <= hit.endLine && hit.startLine <= endLine);
    return at < 0 ? 0 : open.splice(at, 1)[0]!.grade;
  });
  return ndcg10(gains, relevant);
}

export const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
