import { CairnError } from "../model/errors.ts";

const PORT = "5432";
/** User, password, host, port, database and options, in characters that all URL parsers interpret in the same way. */
const TARGET =
  /^postgres(?:ql)?:\/\/(?:[\w.~!$&*+,;=%:-]*@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?\/[\w.~%-]*(?:\?([\w.=&-]*))?$/;
/** Options that name neither another host nor a local file. */
const OPTIONS = new Set(["sslmode", "connect_timeout", "application_name"]);

/**
 * Raises `forbidden` unless the host of a postgres:// URL is among `allowedHosts` (`host` or `host:port`). Otherwise a remote caller
 * could make the server connect to any address in its network, or read files that an option of the URL names.
 */
export function assertAllowedTarget(url: string, allowedHosts: readonly string[]): void {
  const [, host, port = PORT, options = ""] = TARGET.exec(url) ?? [];
  if (host === undefined)
    throw new CairnError(
      "invalid_input",
      "to: use a URL of the form postgres://user:password@host:5432/database, other characters percent-encoded.",
    );
  const other = [...new URLSearchParams(options).keys()].find((name) => !OPTIONS.has(name));
  if (other !== undefined)
    throw new CairnError(
      "forbidden",
      `to: with an API key the URL may only have the options ${[...OPTIONS].join(", ")}. Run \`cairn migrate\` on the server's machine for others.`,
    );
  const target = `${host.toLowerCase()}:${port}`;
  if (allowedHosts.some((allowed) => withPort(allowed.toLowerCase()) === target)) return;
  throw new CairnError(
    "forbidden",
    `to: this server does not migrate to ${target} for callers with an API key. Add it to the setting migrate.allowed_hosts of the server, or run \`cairn migrate\` on the server's machine.`,
  );
}

function withPort(host: string): string {
  return /:\d+$/.test(host.replace(/^\[.*\]/, "")) ? host : `${host}:${PORT}`;
}
