import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { builtFile } from "../files/built-file.ts";
import { CairnError } from "../model/errors.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
/** Compressed copies that the build writes, in the order of preference. */
const ENCODINGS = { br: ".br", gzip: ".gz" } as const;

interface ConsoleFile {
  readonly type: string;
  readonly bodies: Readonly<Record<string, Uint8Array<ArrayBuffer>>>;
}

export interface ConsoleFiles {
  /** Answers with the page. It is revalidated by its ETag, because its name never changes. */
  page(request: Request): Response;
  /** Answers with a file whose name has its hash, so browsers may keep it for good. */
  asset(request: Request, name: string): Response;
}

/** Serves the console from dist/console. The files are few and small, so the first request reads all of them. */
export function consoleFiles(folder: string = builtFile("console")): ConsoleFiles {
  let loaded: ReturnType<typeof load> | undefined;
  const files = () => {
    loaded ??= load(folder);
    return loaded;
  };
  return {
    page(request) {
      const { page, etag, policy } = files();
      const headers = {
        etag,
        "cache-control": "no-cache",
        "content-security-policy": policy,
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
      };
      const known = request.headers.get("if-none-match")?.split(",") ?? [];
      if (known.some((tag) => tag.trim().replace(/^W\//, "") === etag)) return new Response(null, { status: 304, headers });
      return respond(request, page, headers);
    },
    asset(request, name) {
      const file = files().assets.get(name);
      if (!file) throw new CairnError("not_found", "The console has no such file. Reload the page.");
      return respond(request, file, { "cache-control": "public, max-age=31536000, immutable" });
    },
  };
}

function load(folder: string) {
  if (!existsSync(join(folder, "index.html")))
    throw new CairnError("unavailable", "The console is not built. Run npm run build; the API is described at /docs.");
  const page = readFile(folder, "index.html");
  const html = Buffer.from(page.bodies.identity!).toString("utf8");
  const names = readdirSync(join(folder, "assets")).filter((name) => extname(name) in TYPES);
  return {
    page,
    etag: `"${createHash("sha256").update(html).digest("base64url").slice(0, 22)}"`,
    policy: policyOf(html),
    assets: new Map(names.map((name) => [name, readFile(join(folder, "assets"), name)])),
  };
}

/** Allows the page's inline style and script by their hashes, and only what that script loads. Text can never become code. */
function policyOf(html: string): string {
  const hashes = (tag: string) =>
    [...html.matchAll(new RegExp(`<${tag}[^>]*>([^<]*)</${tag}>`, "g"))].map(
      ([, text]) => `'sha256-${createHash("sha256").update(text!).digest("base64")}'`,
    );
  return [
    "default-src 'none'",
    `script-src ${hashes("script").join(" ")} 'strict-dynamic'`,
    `style-src ${hashes("style").join(" ")}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types boot", // of the inline script, which can be made only once
  ].join("; ");
}

function readFile(folder: string, name: string): ConsoleFile {
  const path = join(folder, name);
  const bodies: Record<string, Uint8Array<ArrayBuffer>> = { identity: new Uint8Array(readFileSync(path)) };
  for (const [encoding, suffix] of Object.entries(ENCODINGS))
    if (existsSync(path + suffix)) bodies[encoding] = new Uint8Array(readFileSync(path + suffix));
  return { type: TYPES[extname(name)]!, bodies };
}

function respond(request: Request, { type, bodies }: ConsoleFile, headers: Record<string, string>): Response {
  const accepted = (request.headers.get("accept-encoding") ?? "").split(",").map((part) => part.trim().toLowerCase());
  const encoding = Object.keys(ENCODINGS).find(
    (name) => bodies[name] && accepted.some((part) => part === name || part.startsWith(`${name};`)),
  );
  const encoded = encoding === undefined ? {} : { "content-encoding": encoding };
  return new Response(bodies[encoding ?? "identity"]!, {
    headers: { ...headers, ...encoded, "content-type": type, vary: "accept-encoding" },
  });
}
