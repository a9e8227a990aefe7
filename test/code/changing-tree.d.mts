/** Path → content of a tree that is another one in each round. */
export function treeAt(round: number): Map<string, string>;
/** The renames that a client would name, from the round before to this one. */
export function renamesAt(round: number): { from: string; to: string }[];
/** Names of what is in every round, under one path at a time. */
export const ALWAYS_THERE: readonly string[];
/** Finds what each part of a file says of itself. */
export const MARKER: RegExp;
