/** Returns the language of a file by its name, then by its first line; `text` if neither decides. */
export function languageOf(path: string, content = ""): string {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const byName = FILE_NAMES.get(name) ?? FILE_NAMES.get(name.split(".")[0] ?? "");
  const dot = name.lastIndexOf(".");
  const byExtension = dot >= 0 ? EXTENSIONS.get(name.slice(dot + 1)) : undefined;
  const language = byExtension ?? byName ?? byFirstLine(content) ?? "text";
  // A header may be C or C++; C has no classes, namespaces or templates.
  if (language === "c" && name.endsWith(".h") && CPP_ONLY.test(content.slice(0, 200_000))) return "cpp";
  return language;
}

/** Returns the language that a person or an agent names: `JavaScript`, `js` and `.js` are javascript. `undefined` if it is unknown. */
export function languageNamed(name: string): string | undefined {
  const key = name.trim().toLowerCase().replace(/^\./, "");
  return LANGUAGES.has(key) ? key : (OTHER_NAMES.get(key) ?? EXTENSIONS.get(key) ?? PROGRAMS.get(key));
}

const CPP_ONLY = /^[ \t]*(?:class\s+\w|namespace\s+\w|namespace\s*\{|template\s*<|using\s+\w|public:|private:)|\bstd::\w/m;

function byFirstLine(content: string): string | undefined {
  if (content.startsWith("<?php")) return "php";
  if (!content.startsWith("#!")) return undefined;
  const line = content.slice(2, 200).split("\n", 1)[0] ?? "";
  // `#!/usr/bin/env -S deno run` and `#!/bin/bash -e` both name the program in a word of their own.
  for (const word of line.trim().split(/[\s/]+/)) {
    const program = word.replace(/(?<![\d.])[\d.]+$/, "");
    const language = PROGRAMS.get(program);
    if (language) return language;
  }
  return undefined;
}

const PROGRAMS = new Map([
  ["node", "javascript"],
  ["bun", "typescript"],
  ["deno", "typescript"],
  ["tsx", "typescript"],
  ["ts-node", "typescript"],
  ["python", "python"],
  ["ruby", "ruby"],
  ["php", "php"],
  ["sh", "bash"],
  ["bash", "bash"],
  ["dash", "bash"],
  ["ksh", "bash"],
  ["zsh", "bash"],
  ["perl", "perl"],
  ["lua", "lua"],
]);

const FILE_NAMES = new Map([
  ["dockerfile", "dockerfile"],
  ["containerfile", "dockerfile"],
  ["makefile", "makefile"],
  ["gnumakefile", "makefile"],
  ["rakefile", "ruby"],
  ["gemfile", "ruby"],
  ["vagrantfile", "ruby"],
  ["jenkinsfile", "groovy"],
  [".bashrc", "bash"],
  [".zshrc", "bash"],
  [".profile", "bash"],
  [".bash_profile", "bash"],
  [".babelrc", "json"],
  [".eslintrc", "json"],
  [".prettierrc", "yaml"],
  [".clang-format", "yaml"],
]);

const EXTENSIONS = new Map(
  Object.entries({
    typescript: "ts mts cts",
    tsx: "tsx",
    javascript: "js mjs cjs jsx es6",
    python: "py pyi pyw",
    go: "go",
    rust: "rs",
    java: "java",
    c: "c h",
    cpp: "cc cpp cxx c++ hh hpp hxx h++ ipp tpp tcc inl cu cuh ino",
    csharp: "cs csx",
    ruby: "rb rake gemspec ru",
    php: "php php5 php7 phtml",
    bash: "sh bash zsh ksh",
    sql: "sql psql pgsql ddl dml",
    html: "html htm xhtml",
    css: "css",
    json: "json jsonc json5 webmanifest geojson",
    yaml: "yaml yml",
    markdown: "md markdown mdx mdown",
    kotlin: "kt kts",
    swift: "swift",
    lua: "lua",
    elixir: "ex exs",
    haskell: "hs",
    zig: "zig",
    // Languages without a grammar; their files are split by lines.
    vue: "vue",
    svelte: "svelte",
    scss: "scss sass",
    less: "less",
    scala: "scala sc",
    groovy: "groovy gradle",
    perl: "pl pm",
    r: "r",
    julia: "jl",
    erlang: "erl hrl",
    clojure: "clj cljs cljc edn",
    dart: "dart",
    objc: "m mm",
    powershell: "ps1 psm1",
    toml: "toml",
    ini: "ini cfg conf properties",
    xml: "xml xsd xsl svg plist",
    graphql: "graphql gql",
    protobuf: "proto",
    terraform: "tf tfvars hcl",
    nix: "nix",
    makefile: "mk",
    cmake: "cmake",
    latex: "tex sty",
    rst: "rst",
    asciidoc: "adoc asciidoc",
  }).flatMap(([language, extensions]) => extensions.split(" ").map((extension) => [extension, language] as const)),
);

/** All languages that a file can have. */
export const LANGUAGES: ReadonlySet<string> = new Set([...EXTENSIONS.values(), ...FILE_NAMES.values(), ...PROGRAMS.values(), "text"]);

const OTHER_NAMES = new Map([
  ["c#", "csharp"],
  ["golang", "go"],
  ["shell", "bash"],
  ["objective-c", "objc"],
  ["docker", "dockerfile"],
  ["hcl", "terraform"],
  ["plaintext", "text"],
]);
