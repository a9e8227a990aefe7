import { CairnError } from "../../../model/errors.ts";
import { abandonedOnServer, migratingError } from "../../../model/migration.ts";
import { statementPoolingError, unpreparedError } from "./session.ts";

/** The server went away, or this connection to it did; another connection may work. */
export function isConnectionLoss(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) return LOST.has(code) || (code.startsWith("08") && !isStatementPooling(error));
  // pg gives these no code.
  return error instanceof Error && /^Connection terminated|^Query read timeout|not queryable/.test(error.message);
}

/** Returns whether a prepared statement is missing or exists already: a pooler gave the connection to another server session. */
export function isPreparedLoss(error: unknown): boolean {
  const code = codeOf(error);
  return code === "26000" || code === "42P05";
}

/** PgBouncer reports with the code of a protocol violation that it refuses transactions. */
function isStatementPooling(error: unknown): boolean {
  return codeOf(error) === "08P01" && error instanceof Error && error.message.startsWith("transaction blocks not allowed");
}

/** PgBouncer reports every failure behind it with this code, such as a database that does not exist. */
function poolerReason(error: unknown): string {
  return codeOf(error) === "08P01" && error instanceof Error ? ` (${error.message.slice(0, REASON_SHOWN)})` : "";
}

/** Characters of a pooler's reason in a message. */
const REASON_SHOWN = 200;

/** Returns whether the transaction was rolled back by a deadlock or a serialization failure, and may be repeated. */
export function isCollision(error: unknown): boolean {
  const code = codeOf(error);
  // Concurrent creation of one schema or extension conflicts in the catalog, in spite of IF NOT EXISTS.
  const inCatalog = code === "23505" && (error as { schema?: unknown }).schema === "pg_catalog";
  return code === "40001" || code === "40P01" || inCatalog;
}

/** Returns whether the table or schema does not exist, also for a translated error. */
export function isGone(error: unknown): boolean {
  const code = codeOf(error instanceof CairnError ? error.cause : error);
  return code === "42P01" || code === "3F000";
}

/** Translates the error of a statement to its meaning for the user. `where` names the server, never the password. */
export function translatePostgresError(error: unknown, where: string, outcome: "undone" | "unknown" = "undone"): unknown {
  if (error instanceof CairnError) return error;
  const code = codeOf(error);
  const unavailable: Unavailable = (message, retryAfterMs) =>
    new CairnError("unavailable", message, { cause: error, details: { where, code }, ...(retryAfterMs && { retryAfterMs }) });

  if (isConnectionLoss(error))
    return outcome === "unknown"
      ? unavailable(
          `The connection to ${where} broke while the change was being stored, so it may or may not be stored. Check before you repeat it.`,
        )
      : unavailable(
          `PostgreSQL at ${where} cannot be reached${poolerReason(error)}. Nothing was stored. Check that it runs, then try again.`,
          1_000,
        );
  if (isCollision(error)) return unavailable(`Too many changes collided in ${where}. Nothing was stored; try again.`, 100);
  if (error instanceof Error && error.message === POOL_TIMEOUT)
    return unavailable(`All connections to ${where} are busy. Nothing was stored; try again.`, 1_000);
  if (code === undefined) return error;
  if (isPreparedLoss(error)) return unpreparedError(where, error);
  if (isStatementPooling(error)) return statementPoolingError(where, error);
  if (code.startsWith("23"))
    return new CairnError("conflict", "The record conflicts with a stored one.", { cause: error, details: { where, code } });
  if (code.startsWith("28")) return unavailable(`PostgreSQL at ${where} refused the user name or password. Correct the database URL.`);
  if (code.startsWith("XX")) return unavailable(`PostgreSQL at ${where} reports damaged data. Its log has the details.`);
  return MEANING[code]?.(error, where, unavailable) ?? error;
}

/** The message of pg when no connection of the pool became free in time. */
export const POOL_TIMEOUT = "timeout exceeded when trying to connect";

/** Socket errors, and the SQLSTATEs of a server that stops, has crashed or is starting. */
const LOST: ReadonlySet<string> = new Set(
  "ECONNREFUSED ECONNRESET EPIPE ETIMEDOUT EHOSTUNREACH ENETUNREACH 57P01 57P02 57P03 57P05 25P03".split(" "),
);

type Unavailable = (message: string, retryAfterMs?: number) => CairnError;

const MEANING: Readonly<Record<string, (error: unknown, where: string, unavailable: Unavailable) => CairnError>> = {
  ENOTFOUND: (_, where, unavailable) => unavailable(`The host of ${where} is not known. Correct the database URL.`),
  EAI_AGAIN: (_, where, unavailable) => unavailable(`The host of ${where} cannot be looked up now. Try again.`, 1_000),
  "3D000": (_, where, unavailable) => unavailable(`There is no database ${where}. Create it, or correct the database URL.`),
  "42501": (_, where, unavailable) =>
    unavailable(`The database user may not do this in ${where}. Grant it CREATE on the database: it makes one schema per project.`),
  "42P01": (_, where, unavailable) =>
    unavailable(`The project's tables in ${where} are missing: the schema was dropped or renamed. Try again.`, 1),
  "3F000": (_, where, unavailable) => unavailable(`The project's schema in ${where} is missing: it was dropped or renamed. Try again.`, 1),
  "25006": (_, where, unavailable) => unavailable(`${where} is read-only (a standby?). Use the primary server.`),
  "53100": (_, where, unavailable) => unavailable(`The disk of ${where} is full. Nothing was stored; free some space and try again.`),
  "53200": (_, where, unavailable) => unavailable(`${where} is out of memory. Nothing was stored; try again.`, 1_000),
  "53300": (_, where, unavailable) => unavailable(`${where} has no connection left. Raise max_connections or use a smaller pool.`, 1_000),
  "55P03": (_, where, unavailable) => unavailable(`${where} is locked by another change. Nothing was stored; try again.`, 1_000),
  CR001: (error, where) => migratingError(where, error),
  CR002: (error, where) => abandonedOnServer(where, error),
  "57014": (error, where) =>
    new CairnError("timeout", `A statement in ${where} took longer than its time limit and was stopped. Try again, or ask for less.`, {
      cause: error,
    }),
  "22021": (error) =>
    new CairnError("invalid_input", "The text contains a character that cannot be stored, such as NUL.", { cause: error }),
  "54000": (error) => new CairnError("too_large", "The record is larger than PostgreSQL can hold.", { cause: error }),
};

function codeOf(error: unknown): string | undefined {
  // Node wraps the attempts on several addresses of one host.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const code = (first as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}
