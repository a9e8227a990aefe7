import { CairnError } from "../model/errors.ts";

const MAX_WILDCARDS = 10;

/**
 * Whether a path fits a glob: `*` and `?` within a name, `**` across folders, `{a,b}` for either, `!` in front for all others.
 * A glob without `/` is looked for in every folder; one that names a folder takes all that is in it.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  const negated = glob.startsWith("!");
  const bare = (negated ? glob.slice(1) : glob).replace(/^\.?\//, "").replace(/\/+$/, "");
  if (bare === "") throw new CairnError("invalid_input", "glob: say which paths, such as src/**/*.ts");
  // Each wildcard multiplies the ways to try; nobody needs more than a few.
  if ((bare.match(/\*+|\?/g) ?? []).length > MAX_WILDCARDS)
    throw new CairnError("invalid_input", `glob: at most ${MAX_WILDCARDS} wildcards.`);
  const anywhere = bare.includes("/") ? "" : "(?:.*/)?";
  const pattern = new RegExp(`^${anywhere}${alternatives(bare)}(?:/.*)?$`, "su");
  return (path) => pattern.test(path) !== negated;
}

function alternatives(glob: string): string {
  let depth = 0;
  let source = "";
  for (const [token] of glob.matchAll(/\*\*\/|\*+|\?|[{},]|[^*?{},]+/gu)) {
    if (token === "**/") source += "(?:.*/)?";
    else if (token === "*") source += "[^/]*";
    else if (token.startsWith("**")) source += ".*";
    else if (token === "?") source += "[^/]";
    else if (token === "{") {
      depth++;
      source += "(?:";
    } else if (token === "}" && depth > 0) {
      depth--;
      source += ")";
    } else if (token === "," && depth > 0) source += "|";
    else source += token.replace(/[\\^$.|+()[\]{}/]/g, "\\$&");
  }
  if (depth > 0) throw new CairnError("invalid_input", "glob: a { is not closed.");
  return source;
}
