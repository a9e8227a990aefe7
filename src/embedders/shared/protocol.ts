import { z } from "zod";
import { CairnError } from "../../model/errors.ts";
import { once } from "../../model/once.ts";
import { VERSION } from "../../model/version.ts";
import type { Embedder } from "../../ports/embedder.ts";
import { encodeFrame, type Frame } from "./frame.ts";

/** Increases with each change of the messages. */
const PROTOCOL = 1;

/** Bytes of a frame before the handshake: a hello has a few hundred. */
export const HELLO_BYTES = 4_096;
/** Bytes of a frame: a slice of texts, or its vectors. */
export const FRAME_BYTES = 512 * 1024;
/** Requests of one connection that the leader accepts before it has answered. */
export const REQUESTS_IN_FLIGHT = 16;
/** Texts and characters of one request, few enough that a query of another process never waits long. */
export const SLICE_TEXTS = 16;
export const SLICE_CHARS = 8_000;

/** What both sides must have in common for vectors that are equal to the last bit. */
export interface Identity {
  readonly protocol: number;
  readonly cairn: string;
  /** The JavaScript engine and the processor: the static model computes powers, whose last bit an engine may change. */
  readonly engine: string;
  readonly model: string;
  readonly version: string;
  readonly dimension: number;
}

export function identityOf({ model, version, dimension }: Embedder): Identity {
  return { protocol: PROTOCOL, cairn: VERSION, engine: `${process.versions.v8}/${process.arch}`, model, version, dimension };
}

/** Returns the first part in which two identities differ. */
export function differenceOf(one: Identity, other: Identity): keyof Identity | undefined {
  return (Object.keys(one) as (keyof Identity)[]).find((key) => one[key] !== other[key]);
}

const Id = () => z.int().min(0).max(0xffff_ffff);
const BODIES = once(() => ({
  hello: z.strictObject({
    identity: z.strictObject({
      protocol: z.int(),
      cairn: z.string(),
      engine: z.string(),
      model: z.string(),
      version: z.string(),
      dimension: z.int(),
    }),
    secret: z.string(),
  }),
  /** The leader accepts the connection. */
  welcome: z.strictObject({}),
  /** The leader refuses the connection, and names the part of the identity that differs. */
  refusal: z.strictObject({ reason: z.string().max(100) }),
  embed: z.strictObject({
    id: Id(),
    purpose: z.enum(["query", "document"]),
    texts: z.array(z.string()).min(1).max(SLICE_TEXTS),
  }),
  coverage: z.strictObject({ id: Id(), text: z.string() }),
  share: z.strictObject({ id: Id(), share: z.number().min(0).max(1) }),
  /** The leader could not answer. The caller embeds for itself and meets the same error, or none. */
  failure: z.strictObject({ id: Id() }),
  cancel: z.strictObject({ id: Id() }),
  ping: z.strictObject({}),
  pong: z.strictObject({}),
}));

type Bodies = ReturnType<typeof BODIES>;
type BodyOf<Name extends keyof Bodies> = z.output<Bodies[Name]> extends Record<string, never> ? unknown : z.output<Bodies[Name]>;
type JsonMessage = { [Name in keyof Bodies]: { readonly name: Name } & BodyOf<Name> }[keyof Bodies];
/** All vectors of a request, concatenated. */
interface VectorsMessage {
  readonly name: "vectors";
  readonly id: number;
  readonly values: Float32Array;
}
export type Message = JsonMessage | VectorsMessage;

const NAMES = ["hello", "welcome", "refusal", "embed", "vectors", "coverage", "share", "failure", "cancel", "ping", "pong"] as const;

/** JSON keeps each UTF-16 unit of a text, also half a surrogate pair, so the leader reads exactly the caller's text. */
export function encodeMessage(message: Message): Buffer {
  const type = NAMES.indexOf(message.name);
  if (message.name !== "vectors") {
    const { name: _, ...body } = message;
    return encodeFrame({ type, body: Buffer.from(JSON.stringify(body)) });
  }
  const body = Buffer.allocUnsafe(4 + message.values.byteLength);
  body.writeUInt32LE(message.id, 0);
  body.set(new Uint8Array(message.values.buffer, message.values.byteOffset, message.values.byteLength), 4);
  return encodeFrame({ type, body });
}

/** Raises `invalid_input` for anything that the other side cannot have sent. */
export function decodeMessage({ type, body }: Frame): Message {
  const name = NAMES[type];
  if (name === undefined) throw new CairnError("invalid_input", `A frame has the unknown type ${type}.`);
  if (name === "vectors") {
    if (body.length < 4 || body.length % 4 !== 0) throw new CairnError("invalid_input", "A frame of vectors has a wrong length.");
    const values = new Float32Array((body.length - 4) / 4);
    new Uint8Array(values.buffer).set(body.subarray(4)); // copied, because the body may start at any address
    return { name, id: body.readUInt32LE(0), values };
  }
  const parsed = BODIES()[name].safeParse(parseJson(body));
  if (!parsed.success) throw new CairnError("invalid_input", `A frame «${name}» has a wrong body.`);
  return { name, ...parsed.data } as Message;
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined; // no schema accepts it
  }
}
