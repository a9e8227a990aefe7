/** What a file is for, as far as its path tells. Such files are rarely the answer, unless they are asked for. */
export const PATH_ROLES = ["test", "example", "vendored", "generated", "legacy", "declarations", "header", "docs", "entry"] as const;

export type PathRole = (typeof PATH_ROLES)[number];

export function pathRoles(path: string): ReadonlySet<PathRole> {
  return new Set(RULES.flatMap(({ role, pattern }) => (pattern.test(path) ? [role] : [])));
}

const RULES: readonly { readonly role: PathRole; readonly pattern: RegExp }[] = [
  {
    role: "test",
    pattern:
      /(?:^|\/)(?:tests?|specs?|__tests__|__mocks__|testing|testdata|fixtures?)\/|[._-](?:test|tests|spec)\.[^/]+$|(?:^|\/)test_[^/]+$|(?:^|\/)[^/]*Tests?\.(?:java|cs|kt|php)$/,
  },
  { role: "example", pattern: /(?:^|\/)(?:examples?|samples?|demos?|benchmarks?|bench)\// },
  { role: "vendored", pattern: /(?:^|\/)(?:node_modules|vendor|vendored|third[_-]?party|external|site-packages|bower_components)\// },
  {
    role: "generated",
    pattern:
      /(?:^|\/)(?:dist|build|out|target|generated|__generated__|gen)\/|\.(?:min|bundle|generated|g|pb)\.[^/]+$|_pb2?\.[^/]+$|(?:^|\/)(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|go\.sum)$/,
  },
  { role: "legacy", pattern: /(?:^|\/)(?:legacy|deprecated|compat|_?old)\// },
  { role: "declarations", pattern: /\.d\.[mc]?ts$|\.pyi$/ },
  { role: "header", pattern: /\.(?:h|hh|hpp|hxx)$/ },
  { role: "docs", pattern: /\.(?:md|mdx|rst|adoc|txt)$/i },
  { role: "entry", pattern: /(?:^|\/)(?:index\.[mc]?[jt]sx?|__init__\.py|mod\.rs)$/ },
];
