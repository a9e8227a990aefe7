import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, delimiter, dirname, join, resolve } from "node:path";

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** Reads a Dockerfile: comments removed, continued lines joined. */
export function readDockerfile(text: string): Instruction[] {
  return text
    .replace(/^\s*#.*\n/gm, "")
    .replace(/\\\n/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => /^(\S+)\s+(.*)$/.exec(line.trim()) ?? [])
    .map(([, name = "", rest = ""]) => ({ name, rest }));
}

/** An image as a directory tree, with what its instructions say about the container. */
export interface Image {
  readonly root: string;
  readonly env: Record<string, string>;
  workdir: string;
  user: string;
  health: readonly string[];
  entrypoint: readonly string[];
  command: readonly string[];
}

export interface BuildOptions {
  /** The folder that `docker build` gets as its context. */
  readonly context: string;
  /** Where the trees of the stages are made; on the file system of `context`, because packages are hard-linked. */
  readonly scratch: string;
}

/**
 * Executes a Dockerfile without Docker: every stage is a directory, and absolute paths in its steps are paths below that directory.
 * Two commands are replaced. `npm ci` links the installed packages of the context, which has the same lock file.
 * `chown` writes a list, because only root may give files away. An unknown instruction is an error.
 */
export function buildImage({ context, scratch }: BuildOptions): Image {
  const stages = new Map<string, Image>();
  const tools = join(scratch, "tools");
  makeTools(tools);
  let image: Image | undefined;
  for (const { name, rest } of readDockerfile(readFileSync(join(context, "Dockerfile"), "utf8"))) {
    if (name === "FROM") {
      const [, , stage = "final"] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(rest) ?? [];
      image = emptyImage(join(scratch, stage));
      stages.set(stage, image);
    } else if (!image) throw new Error(`${name} before FROM`);
    else if (name === "RUN") run(image, rest, { tools, context });
    else if (name === "COPY") copy(image, rest, (stage) => stages.get(stage)!.root, context);
    else setProperty(image, name, rest);
  }
  return image!;
}

/** Returns the working directory and the environment of a container's processes, with further variables as of `docker run --env`. */
export function containerOptions(image: Image, env: Record<string, string>): { cwd: string; env: Record<string, string> } {
  return { cwd: join(image.root, image.workdir), env: { ...environmentOf(image), ...env } };
}

function emptyImage(root: string): Image {
  mkdirSync(join(root, "usr/local/bin"), { recursive: true });
  return { root, env: {}, workdir: "/", user: "root", health: [], entrypoint: [], command: [] };
}

function setProperty(image: Image, name: string, rest: string): void {
  if (name === "WORKDIR") {
    image.workdir = rest;
    mkdirSync(join(image.root, rest), { recursive: true });
  } else if (name === "ENV") for (const [, key, value] of rest.matchAll(/(\w+)=(\S+)/g)) image.env[key!] = value!;
  else if (name === "USER") image.user = rest;
  else if (name === "ENTRYPOINT") image.entrypoint = JSON.parse(rest);
  else if (name === "CMD") image.command = JSON.parse(rest);
  else if (name === "HEALTHCHECK") image.health = JSON.parse(rest.slice(rest.indexOf("CMD") + 3));
  else if (name !== "VOLUME" && name !== "EXPOSE") throw new Error(`The test cannot execute ${name}.`);
}

/** Written by the replaced `npm ci`: the folder in which it ran. */
const INSTALLED = "installed-in.txt";

function run(image: Image, script: string, { tools, context }: { readonly tools: string; readonly context: string }): void {
  const inRoot = script.replace(/(^|[\s"'=])\/(?=\w)/g, `$1${image.root}/`);
  const { status, stdout, stderr } = spawnSync("sh", ["-c", inRoot], {
    cwd: join(image.root, image.workdir),
    env: { ...environmentOf(image, tools), npm_config_offline: "true", npm_config_update_notifier: "false" },
    encoding: "utf8",
    timeout: 280_000,
  });
  if (status !== 0) throw new Error(`RUN ${script}\nended with ${status}:\n${stdout}${stderr}`);
  const marker = join(tools, INSTALLED);
  if (!existsSync(marker)) return;
  copyTree(join(context, "node_modules"), join(readFileSync(marker, "utf8").trim(), "node_modules"), true);
  rmSync(marker);
}

/** Only the variables of the image count, with absolute paths below its root. */
function environmentOf({ root, env }: Image, ...path: readonly string[]): Record<string, string> {
  const own = Object.entries(env).map(([key, value]) => [key, value.startsWith("/") ? join(root, value) : value]);
  const PATH = [...path, join(root, "usr/local/bin"), dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter);
  return { ...Object.fromEntries(own), HOME: root, PATH };
}

function copy(image: Image, rest: string, rootOf: (stage: string) => string, context: string): void {
  const words = rest.split(/\s+/);
  const from = words[0]!.startsWith("--from=") ? words.shift()!.slice("--from=".length) : undefined;
  const target = resolve(join(image.root, image.workdir), words.pop()!);
  for (const source of words) {
    if (from) copyTree(join(rootOf(from), source), words.length > 1 ? join(target, basename(source)) : target, true);
    else if (source === ".") for (const entry of sentToBuild(context)) copyTree(join(context, entry), join(target, entry), false);
    else if (sentToBuild(context).includes(source)) copyTree(join(context, source), join(target, source), false);
    else throw new Error(`.dockerignore keeps ${source} from the build.`);
  }
}

/** Returns the top-level entries that .dockerignore lets through; the last rule that matches decides. */
export function sentToBuild(context: string): string[] {
  const rules = readFileSync(join(context, ".dockerignore"), "utf8").split("\n");
  const used = rules.filter((line) => line.trim() !== "" && !line.startsWith("#"));
  for (const rule of used) if (rule !== "*" && !/^![\w.-]+$/.test(rule)) throw new Error(`The test cannot read the rule ${rule}.`);
  return readdirSync(context).filter((entry) => {
    const last = used.findLast((rule) => rule === "*" || rule === `!${entry}`);
    return last === undefined || last.startsWith("!");
  });
}

/**
 * Copies a tree. Packages and built files are hard-linked, which takes a second instead of a minute for 750 MB. Files that a step may
 * write in place are copied: those of the context, and npm's list of installed packages.
 */
function copyTree(from: string, to: string, link: boolean): void {
  const stat = lstatSync(from);
  if (stat.isDirectory()) {
    mkdirSync(to, { recursive: true });
    for (const entry of readdirSync(from)) copyTree(join(from, entry), join(to, entry), link);
  } else if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from), to);
  else if (link && basename(from) !== ".package-lock.json") linkSync(from, to);
  else copyFileSync(from, to);
}

/** Puts the two replaced commands ahead of the real ones: `tools` is the first folder of PATH. */
function makeTools(tools: string): void {
  mkdirSync(tools, { recursive: true });
  const write = (name: string, lines: string) => writeFileSync(join(tools, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  write("npm", `if [ "$1" = ci ]; then pwd > ${join(tools, INSTALLED)}; else PATH=\${PATH#*:} exec npm "$@"; fi`);
  write("chown", `echo "$@" >> ${join(tools, "chown.txt")}`);
}
