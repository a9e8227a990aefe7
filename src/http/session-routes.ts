import type { Context, Hono } from "hono";
import { z } from "zod";
import { startId } from "../events/cursor.ts";
import { CairnError } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { Caller } from "../operations/invoke.ts";
import { type Credentials, identify } from "./admission.ts";
import type { AppEnv } from "./app-env.ts";
import { readJson } from "./input.ts";
import { CODE_MS, oneTimeCodes } from "./one-time-codes.ts";
import { endSession, sealSession } from "./session-cookie.ts";

/** A sign-in has a key or a code; nothing in it is long. */
const BODY_BYTES = 4_096;
const SignIn = z.union([z.strictObject({ key: z.string().min(1).max(256) }), z.strictObject({ code: z.string().min(1).max(256) })]);

/** Adds the sign-in of the console: a key or a one-time code becomes a cookie that the page's half opens. */
export function addSessionRoutes(
  app: Hono<AppEnv>,
  credentials: Credentials & { readonly nowMs: () => number; readonly indexesFolders: boolean },
  callerOf: (c: Context<AppEnv>) => Caller,
): void {
  const codes = oneTimeCodes();

  app.post("/session/code", (c) => {
    const caller = callerOf(c);
    if (caller.keyId !== undefined || credentials.localToken === undefined)
      throw new CairnError("forbidden", "Only the local user can open the console by a link. Sign in with an API key instead.");
    return json({ code: codes.create(), expires_in_seconds: CODE_MS / 1000 });
  });

  app.post("/session", async (c) => {
    const input = SignIn.safeParse(await readJson(c.req.raw, BODY_BYTES));
    if (!input.success)
      throw new CairnError("invalid_input", "Send { key } with an API key, or { code } with the code that cairn ui made.");
    const credential = "key" in input.data ? input.data.key : await redeem(input.data.code);
    const { caller, refusal } = await identify({ credential, isSession: true }, credentials);
    if (!caller) throw refusal;
    const isSecure = c.req.header("origin")?.startsWith("https://") === true;
    const { pageKey, setCookie, expiresAt } = sealSession(credential, credentials.nowMs(), isSecure);
    const response = json({
      page_key: pageKey,
      expires_at: expiresAt.toISOString(),
      ...describe(caller, credentials),
      event_id: startId(credentials.nowMs()),
    });
    const ended = endSession(c.req.raw.headers);
    if (ended !== undefined) response.headers.append("set-cookie", ended);
    response.headers.append("set-cookie", setCookie);
    return response;
  });

  app.get("/session", (c) => json({ ...describe(callerOf(c), credentials), event_id: startId(credentials.nowMs()) }));

  app.delete("/session", (c) => {
    const ended = endSession(c.req.raw.headers);
    return new Response(null, { status: 204, headers: ended === undefined ? {} : { "set-cookie": ended } });
  });

  async function redeem(code: string): Promise<string> {
    const token = codes.redeem(code) ? await credentials.localToken?.() : undefined;
    if (token === undefined)
      throw new CairnError("unauthorized", "This link was used already or is older than a minute. Run cairn ui again.");
    return token;
  }
}

/** What the console needs to know of its caller: which actions to offer, and in which projects. */
function describe({ access, projects, keyId }: Caller, { indexesFolders }: { readonly indexesFolders: boolean }) {
  return {
    access,
    all_projects: projects === "all",
    projects: projects === "all" ? [] : projects,
    ...(keyId === undefined ? indexesFolders && { indexes_folders: true } : { key_id: keyId }),
    version: VERSION,
  };
}

function json(body: unknown): Response {
  return new Response(JSON.stringify(body), { headers: { "content-type": "application/json; charset=utf-8" } });
}
