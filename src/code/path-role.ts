/** Roles of files, by path. Such files are rarely the answer unless the query asks for them. */
export const PATH_ROLES = ["test", "example", "vendored", "generated", "legacy", "declarations", "header", "docs", "entry"] as const;

export type PathRole = (typeof PATH_ROLES)[number];

export function pathRoles(path: string): ReadonlySet<PathRole> {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return new Set(RULES.flatMap(({ role, inPath, inName }) => (inPath?.test(path) || inName?.test(name) ? [role] : [])));
}

/** Patterns of the whole path and of the file name alone. */
const RULES: readonly { readonly role: PathRole; readonly inPath?: RegExp; readonly inName?: RegExp }[] = [
  {
    role: "test",
    inPath: /(?:^|\/)(?:tests?|specs?|__tests__|__mocks__|testing|testdata|fixtures?)\//,
    inName: /[._-](?:tests?|spec)\.(?=.)|^test_(?=.)|Tests?\.(?:java|cs|kt|php)$/,
  },
  { role: "example", inPath: /(?:^|\/)(?:examples?|samples?|demos?|benchmarks?|bench)\// },
  { role: "vendored", inPath: /(?:^|\/)(?:node_modules|vendor|vendored|third[_-]?party|external|site-packages|bower_components)\// },
  {
    role: "generated",
    inPath: /(?:^|\/)(?:dist|build|out|target|generated|__generated__|gen)\//,
    inName: /\.(?:min|bundle|generated|g|pb)\.(?=.)|_pb2?\.(?=.)|^(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|go\.sum)$/,
  },
  { role: "legacy", inPath: /(?:^|\/)(?:legacy|deprecated|compat|_?old)\// },
  { role: "declarations", inName: /\.d\.[mc]?ts$|\.pyi$/ },
  { role: "header", inName: /\.(?:h|hh|hpp|hxx)$/ },
  { role: "docs", inName: /\.(?:md|mdx|rst|adoc|txt)$/i },
  { role: "entry", inName: /^(?:index\.[mc]?[jt]sx?|__init__\.py|mod\.rs)$/ },
];
