import { basename } from "node:path";
import { projectDatabaseName } from "../../src/model/ids.ts";
import type { World } from "./world.ts";

type Input = Record<string, unknown>;

/** A way to make a call for one project reach another: changes the input, the text of the JSON, the headers or the URL. */
export interface Trick {
  readonly name: string;
  readonly input?: (input: Input, field: string) => Input;
  /** Writes the JSON by hand, for what an object cannot express. */
  readonly json?: (input: Input, field: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: (path: string) => string;
  readonly method?: string;
}

/** Spellings of the other project's path: each either is refused or names a project that is not the other one. */
function spellings({ own, other, link }: World): Record<string, unknown> {
  const name = basename(other);
  const fullwidth = [...name].map((letter) => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0)).join("");
  return {
    "the other project": other,
    "dot dot": `${own}/../${name}`,
    dot: `${own}/./../${name}`,
    "dot dot past the root": `${own}/${"../".repeat(40)}${other.slice(1)}`,
    "double slash": other.replaceAll("/", "//"),
    "leading double slash": `/${other}`,
    "trailing slash": `${other}/`,
    "own project, trailing slash": `${own}/`,
    "NUL at the end": `${other}\u0000`,
    "NUL after the own project": `${own}\u0000${other}`,
    "percent-encoded": encodeURIComponent(other),
    "percent-encoded dots": `${own}/%2e%2e/${name}`,
    "percent-encoded twice": encodeURIComponent(encodeURIComponent(other)),
    backslashes: other.replaceAll("/", "\\"),
    "upper case": other.toUpperCase(),
    "full width": other.replace(name, fullwidth),
    "combining characters": other.replace(name, `${name}\u0301`),
    "zero width": other.replace(name, `${name}\u200b`),
    "long s and dotless i": other.replaceAll("s", "\u017f").replaceAll("i", "\u0131"),
    "symbolic link": link,
    "below the symbolic link": `${link}/.`,
    "file URL": `file://${other}`,
    "name alone": name,
    "database name": projectDatabaseName(other),
    "database file": `${projectDatabaseName(other)}.db`,
    shared: "shared",
    star: "*",
    SQL: `${own}' OR '1'='1`,
    "very long": `${own}/${"a/../".repeat(1_000)}../${name}`,
    "white space": ` ${other} `,
    "line break": `${own}\n${other}`,
    "list with the other": [other],
    "own and other": [own, other],
    object: { toString: other, path: other, $ne: null },
    null: null,
    true: true,
    number: 0,
  };
}

/** All tricks, generated from the paths of the world. */
export function allTricks(world: World): Trick[] {
  const { own, other } = world;
  const both = (first: Input, second: Input) => (input: Input) => ({ ...first, ...input, ...second });
  return [
    ...Object.entries(spellings(world)).map(
      ([name, value]): Trick => ({ name: `path: ${name}`, input: (input, field) => ({ ...input, [field]: value }) }),
    ),
    { name: "own project with the other's ids", input: (input, field) => ({ ...input, [field]: own }) },
    { name: "no project", input: (input, field) => Object.fromEntries(Object.entries(input).filter(([key]) => key !== field)) },
    { name: "project_id other, project_path own", input: both({}, { project_path: own, project_id: other }) },
    { name: "project_path other, project_id own", input: both({}, { project_path: other, project_id: own }) },
    { name: "project_id instead of project_path", input: ({ project_path: _, ...input }) => ({ ...input, project_id: other }) },
    { name: "camel case", input: (input, field) => ({ ...input, [field]: own, projectPath: other, projectId: other }) },
    { name: "shared scope", input: (input, field) => ({ ...input, [field]: own, scope: "shared" }) },
    { name: "all", input: (input, field) => ({ ...input, [field]: own, all: true }) },
    { name: "the other project as filter", input: (input, field) => ({ ...input, [field]: own, project: other, of_project: other }) },
    { name: "JSON: own, then other", json: (input, field) => twice(input, field, own, other) },
    { name: "JSON: other, then own", json: (input, field) => twice(input, field, other, own) },
    { name: "JSON: __proto__", json: (input, field) => `{"__proto__":{"${field}":${JSON.stringify(other)}},${rest(input, field, own)}` },
    {
      name: "JSON: constructor",
      json: (input, field) => `{"constructor":{"prototype":{"${field}":${JSON.stringify(other)}}},${rest(input, field, own)}`,
    },
    {
      name: "JSON: escaped key",
      json: (input, field) => `{"\\u0070${field.slice(1)}":${JSON.stringify(other)},${rest(input, field, own)}`,
    },
    { name: "JSON: list around it", json: (input) => JSON.stringify([input]) },
    { name: "JSON: byte order mark", json: (input) => `\ufeff${JSON.stringify(input)}` },
    { name: "forwarded from loopback", headers: { "x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", forwarded: "for=127.0.0.1" } },
    { name: "a user in a header", headers: { "x-forwarded-user": "admin", "x-remote-user": "admin", "x-cairn-access": "admin" } },
    { name: "another URL in a header", headers: { "x-original-url": "/v1/key/list", "x-rewrite-url": "/v1/key/list" } },
    { name: "another method in a header", headers: { "x-http-method-override": "GET", "x-method-override": "DELETE" } },
    { name: "a second key", headers: { "x-api-key": "garbage" } },
    { name: "a foreign origin", headers: { origin: "https://attacker.example", "sec-fetch-site": "cross-site" } },
    { name: "URL: dot segments", path: (path) => `/docs/..${path}` },
    { name: "URL: encoded dot segments", path: (path) => `/docs/%2e%2e${path}` },
    { name: "URL: double slash", path: (path) => `/${path}` },
    { name: "URL: trailing slash", path: (path) => `${path}/` },
    { name: "URL: upper case", path: (path) => path.toUpperCase() },
    { name: "URL: encoded", path: (path) => `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}` },
    { name: "URL: parameters", path: (path) => `${path};x=y` },
    { name: "URL: absolute", path: (path) => `http://127.0.0.1${path}` },
    {
      name: "URL: project in the query",
      path: (path) => `${path}${path.includes("?") ? "&" : "?"}project_path=${encodeURIComponent(other)}`,
    },
    ...["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"].map((method): Trick => ({ name: `method ${method}`, method })),
  ];
}

function twice(input: Input, field: string, first: string, second: string): string {
  return `{"${field}":${JSON.stringify(first)},${rest(input, field, second)}`;
}

/** The rest of a JSON object that names this project. */
function rest(input: Input, field: string, project: string): string {
  return JSON.stringify({ ...input, [field]: project }).slice(1);
}
