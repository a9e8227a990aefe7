#!/usr/bin/env node
// npm test, npm run test:fast (without PostgreSQL, nginx, Caddy and a browser), npm run test:soak (full counts), npm run test:attack (the whole attack
// corpus and a long fuzz run; CAIRN_TEST_ATTACK_SEED and CAIRN_TEST_ATTACK_REQUESTS repeat or lengthen it). Further arguments are passed to vitest:
//   npm test -- test/stores            only these files
// npm run test:clients runs real agents from npm with a mock model on loopback.
// Sets up everything that it needs. CAIRN_TEST_POSTGRES_URL points to a server of your own (superuser, pgvector installed).
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const ATTACKS = ["test/security/attack-corpus.test.ts", "test/security/fuzz.test.ts"];
const [fast, soak, attack, clients, rest] = readArguments(process.argv.slice(2));
const env = {
  ...process.env,
  ...((fast || attack) && { CAIRN_TEST_FAST: "1" }),
  ...(soak && { CAIRN_SOAK: "1" }),
  ...(attack && { CAIRN_TEST_ATTACK: "1" }),
  ...(clients && { CAIRN_TEST_CLIENTS: "1", CAIRN_TEST_FAST: "1" }),
};

run(process.execPath, [join(root, "scripts/build.mjs")]);
if (env.CAIRN_TEST_FAST !== "1" && !env.CAIRN_TEST_POSTGRES_URL)
  run(join(root, "scripts/postgres.sh"), ["prepare"], "The tests need PostgreSQL. `npm run test:fast` omits tests that use it.");
if (env.CAIRN_TEST_FAST !== "1")
  run(
    join(root, "scripts/proxies.sh"),
    ["prepare"],
    "The tests need nginx, Caddy and PgBouncer. `npm run test:fast` omits tests that use them.",
  );
if (env.CAIRN_TEST_FAST !== "1" && process.platform !== "win32")
  run(join(root, "scripts/chromium.sh"), ["prepare"], "The tests need Chromium. `npm run test:fast` omits tests that use it.");
run(process.execPath, [
  join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs"),
  "run",
  ...(rest.length > 0 ? rest : attack ? ATTACKS : clients ? ["test/clients"] : []),
]);

function readArguments(args) {
  const known = ["--fast", "--soak", "--attack", "--clients"];
  return [...known.map((flag) => args.includes(flag)), args.filter((argument) => !known.includes(argument))];
}

function run(command, args, onFailure) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit", env });
  if (status === 0) return;
  if (error) console.error(error.message);
  if (onFailure) console.error(onFailure);
  process.exit(status ?? 1);
}
