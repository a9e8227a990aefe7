import { CairnError } from "../model/errors.ts";
import { linearMatcher, optional, type Pattern } from "./linear-pattern.ts";

const SLASH = "/".codePointAt(0)!;
const IN_NAME: Pattern = { set: (codePoint) => codePoint !== SLASH };
const ANYTHING: Pattern = { many: { set: () => true } };
/** Any number of whole folders. */
const FOLDERS = optional({ sequence: [ANYTHING, { text: "/" }] });

/**
 * Returns a test of whether a path fits a glob: `*` and `?` within a name, `**` across folders, `{a,b}` for either, `!` in
 * front for all others. A glob without `/` matches in every folder; one that names a folder matches everything inside it.
 * The time per path is at most the length of the glob times the length of the path.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  const negated = glob.startsWith("!");
  const bare = (negated ? glob.slice(1) : glob).replace(/^\.?\//, "").replace(/(?<!\/)\/+$/, "");
  if (bare === "") throw new CairnError("invalid_input", "glob: say which paths, such as src/**/*.ts");
  const inside = optional({ sequence: [{ text: "/" }, ANYTHING] });
  const matches = linearMatcher({ sequence: [...(bare.includes("/") ? [] : [FOLDERS]), readGlob(bare), inside] });
  return (path) => matches(path) !== negated;
}

/** An open group: its finished alternatives, and the parts of the one that is being read. */
interface Group {
  readonly alternatives: Pattern[];
  parts: Pattern[];
}

function readGlob(glob: string): Pattern {
  const groups: Group[] = [{ alternatives: [], parts: [] }];
  const closeAlternative = (group: Group) => {
    group.alternatives.push({ sequence: group.parts });
    group.parts = [];
  };
  for (const [token] of glob.matchAll(/\*\*\/|\*+|\?|[{},]|[^*?{},]+/gu)) {
    const group = groups.at(-1)!;
    if (token === "**/") group.parts.push(FOLDERS);
    else if (token === "*") group.parts.push({ many: IN_NAME });
    else if (token.startsWith("**")) group.parts.push(ANYTHING);
    else if (token === "?") group.parts.push(IN_NAME);
    else if (token === "{") groups.push({ alternatives: [], parts: [] });
    else if (token === "," && groups.length > 1) closeAlternative(group);
    else if (token === "}" && groups.length > 1) {
      closeAlternative(group);
      groups.pop();
      groups.at(-1)!.parts.push({ either: group.alternatives });
    } else group.parts.push({ text: token });
  }
  if (groups.length > 1) throw new CairnError("invalid_input", "glob: a { is not closed.");
  return { sequence: groups[0]!.parts };
}
