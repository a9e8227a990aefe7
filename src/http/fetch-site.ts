import { CairnError } from "../model/errors.ts";

/** The same for everybody, without secrets and made without work: a link on any page may lead there. */
const PUBLIC_DOCUMENTS: ReadonlySet<string> = new Set(["/", "/docs", "/openapi.json"]);

/**
 * Refuses what a page of another site makes a browser send. A GET for an image, script or link carries no Origin, so only
 * `Sec-Fetch-Site` shows where it comes from. Programs send no such header and pass; so do typed addresses (`none`), the
 * server's own pages (`same-origin`) and pages of an allowed origin, whose calls carry an Origin.
 */
export function refuseOtherSites(request: Request, allowedOrigins: readonly string[]): void {
  const site = request.headers.get("sec-fetch-site");
  if (site === null || site === "none" || site === "same-origin") return;
  const origin = request.headers.get("origin");
  if (origin !== null && allowedOrigins.includes(origin)) return;
  if ((request.method === "GET" || request.method === "HEAD") && PUBLIC_DOCUMENTS.has(new URL(request.url).pathname)) return;
  throw new CairnError(
    "forbidden",
    "Pages of other sites may not call this server. Add the page's origin to the setting http.allowed_origins to allow its calls.",
  );
}
