import { createHash } from "node:crypto";
import { z } from "zod";
import { type ErrorCode, WIRE_NAME } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { Operation } from "../operations/operation.ts";
import { STYLE } from "./docs-style.ts";
import { HTTP_STATUS } from "./errors.ts";
import { exampleOf, type JsonSchema } from "./example.ts";
import { nounOf, type Route, routeOf } from "./routes.ts";

const ERROR_MEANING: Record<ErrorCode, string> = {
  invalid_input: "The input does not fit; <code>details.issues</code> names the fields. 405 and 415 carry this code too.",
  unauthorized: "No credential, or an invalid one.",
  forbidden: "The key is for other projects, or may not do this.",
  not_found: "There is no such record or path.",
  conflict: "It contradicts what is stored.",
  too_large: "The body is over the limit.",
  rate_limited: "Too many requests; wait as long as <code>Retry-After</code> says.",
  cancelled: "The client went away.",
  internal: "A fault in Cairn; the log has it under the request id.",
  unavailable: "The storage or the server is not ready; try again.",
  timeout: "The operation's time was up.",
};

export interface DocsPage {
  /** The page, with examples that call the server at this origin. */
  html(origin: string): string;
  /** What the page needs of a browser: its own style and nothing else. */
  readonly policy: string;
}

/** Stands in the page for the origin. */
const ORIGIN = "{origin}";

/** The API as a page for people, without scripts and without anything from elsewhere. */
export function docsPage(operations: readonly Operation[]): DocsPage {
  const nouns = [...new Set(operations.map(({ name }) => nounOf(name)))];
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Cairn HTTP API</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Operations">
<a class="brand" href="#top">Cairn</a>
${nouns.map((noun) => `<h2>${escapeHtml(noun)}</h2>\n<ul>${of(operations, noun).map(link).join("")}</ul>`).join("\n")}
<h2>reference</h2>
<ul><li><a href="#access">Access</a></li><li><a href="#errors">Errors</a></li><li><a href="/openapi.json">openapi.json</a></li><li><a href="/health">health</a></li></ul>
</nav>
<main id="top">
<header>
<h1>HTTP API</h1>
<p>Durable memory for AI agents and the workflows they run. Version ${escapeHtml(VERSION)}. Every operation here is also an MCP tool or a <code>cairn</code> command, under the same name and with the same fields.</p>
</header>
<section id="access">
<h2>Access</h2>
<p>Every call needs a credential, sent as <code>Authorization: Bearer &lt;credential&gt;</code> or <code>x-api-key</code>. The user who runs the server has the local token, which <code>cairn token</code> prints and which may do everything. Other people and machines get an API key. A key names its projects and may <em>read</em>, <em>write</em> or <em>administer</em>; <code>cairn key create</code> makes one. Every answer carries <code>x-request-id</code>.</p>
</section>
${nouns.map((noun) => `<section>\n<h2>${escapeHtml(noun)}</h2>\n${of(operations, noun).map(article).join("\n")}\n</section>`).join("\n")}
<section id="errors">
<h2>Errors</h2>
<p>Every error has the same form: <code>{ "error": { "code", "name", "message", "details", "request_id" } }</code>. The message says what happened, then what to do.</p>
<div class="table"><table><thead><tr><th>Status</th><th>code</th><th>name</th><th>Meaning</th></tr></thead><tbody>
${(Object.keys(HTTP_STATUS) as ErrorCode[]).map((code) => `<tr><td>${HTTP_STATUS[code]}</td><td><code>${code}</code></td><td><code>${WIRE_NAME[code]}</code></td><td>${ERROR_MEANING[code]}</td></tr>`).join("\n")}
</tbody></table></div>
</section>
</main>
</body>
</html>`;
  const hash = createHash("sha256").update(STYLE).digest("base64");
  return {
    html: (origin) => html.replaceAll(ORIGIN, escapeHtml(origin)),
    policy: `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

function of(operations: readonly Operation[], noun: string): readonly Operation[] {
  return operations.filter(({ name }) => nounOf(name) === noun);
}

function link({ name }: Operation): string {
  return `<li><a href="#${escapeHtml(name)}">${escapeHtml(name)}</a></li>`;
}

function article(operation: Operation): string {
  const route = routeOf(operation);
  const input = schemaOf(operation.input, "input");
  const output = schemaOf(operation.output, "output");
  return `<article id="${escapeHtml(operation.name)}">
<h3><span class="method ${route.method.toLowerCase()}">${route.method}</span> <code>${escapeHtml(route.path)}</code></h3>
<p>${escapeHtml(operation.summary)}${operation.description ? ` ${escapeHtml(operation.description)}` : ""}</p>
<p class="facts"><span>${escapeHtml(operation.name)}</span><span>${operation.access} access</span><span>at most ${operation.limits.timeoutMs / 1000} s</span></p>
${fields(input, route)}
<h4>Example</h4>
<pre><code>${escapeHtml(curl(route, exampleOf(input) as Record<string, unknown>))}</code></pre>
<h4>Answer <small>${route.status}</small></h4>
<pre><code>${escapeHtml(JSON.stringify(exampleOf(output), null, 2))}</code></pre>
</article>`;
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  return z.toJSONSchema(schema, { io, unrepresentable: "any" }) as JsonSchema;
}

function fields(schema: JsonSchema, route: Route): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const where = route.pathFields.includes(name) ? "path" : route.hasBody ? "" : "query";
    const required = (schema.required ?? []).includes(name);
    const limits = limitsOf(field).join(" · ");
    const about = [escapeHtml(field.description ?? ""), limits && `<small>${escapeHtml(limits)}</small>`].filter(Boolean).join(" ");
    return `<tr><td><code>${escapeHtml(name)}</code>${required ? '<span class="required">required</span>' : ""}</td><td>${escapeHtml(typeOf(field))}${where ? ` <small>${where}</small>` : ""}</td><td>${about}</td></tr>`;
  });
  if (rows.length === 0) return "<h4>Input</h4>\n<p>None.</p>";
  return `<h4>Input</h4>
<div class="table"><table><thead><tr><th>Field</th><th>Type</th><th>About</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table></div>`;
}

function typeOf(schema: JsonSchema): string {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items ?? {})}[]`;
  if (schema.format === "date-time") return "date-time";
  return String(schema.type ?? "any");
}

function limitsOf(schema: JsonSchema): string[] {
  const huge = Number.MAX_SAFE_INTEGER;
  return [
    schema.default === undefined ? "" : `default ${JSON.stringify(schema.default)}`,
    (schema.minLength ?? 0) > 1 ? `at least ${schema.minLength} characters` : "",
    schema.maxLength === undefined ? "" : `at most ${schema.maxLength.toLocaleString("en")} characters`,
    schema.minimum === undefined || schema.minimum <= -huge ? "" : `from ${schema.minimum.toLocaleString("en")}`,
    schema.maximum === undefined || schema.maximum >= huge ? "" : `up to ${schema.maximum.toLocaleString("en")}`,
    schema.maxItems === undefined ? "" : `at most ${schema.maxItems.toLocaleString("en")}`,
  ].filter(Boolean);
}

const AUTHORIZATION = `-H "authorization: Bearer $(cairn token)"`;

function curl(route: Route, example: Record<string, unknown>): string {
  const path = route.path.replace(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(String(example[field] ?? field)));
  const rest = Object.fromEntries(Object.entries(example).filter(([name]) => !route.pathFields.includes(name)));
  if (!route.hasBody) {
    const query = new URLSearchParams(Object.entries(rest).map(([name, value]): [string, string] => [name, String(value)])).toString();
    return `curl ${route.method === "GET" ? "" : `-X ${route.method} `}'${ORIGIN}${path}${query ? `?${query}` : ""}' \\\n  ${AUTHORIZATION}`;
  }
  return `curl ${route.method === "POST" ? "" : `-X ${route.method} `}${ORIGIN}${path} \\\n  ${AUTHORIZATION} \\\n  -H 'content-type: application/json' \\\n  -d '${JSON.stringify(rest).replaceAll("'", "'\\''")}'`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
