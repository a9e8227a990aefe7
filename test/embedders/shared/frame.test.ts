import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeFrame, type Frame, frameReader } from "../../../src/embedders/shared/frame.ts";
import { decodeMessage, encodeMessage, FRAME_BYTES, type Message } from "../../../src/embedders/shared/protocol.ts";

const frames = fc.array(
  fc.record({ type: fc.integer({ min: 0, max: 255 }), body: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) }),
  { maxLength: 8 },
);
const plain = (frame: Frame) => [frame.type, frame.body.toString("hex")];

describe("a frame reader", () => {
  it("returns the frames that were sent, however the stream is cut", () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sent, cuts) => {
        const stream = Buffer.concat(sent.map(encodeFrame));
        const reader = frameReader(() => 300);
        const read: Frame[] = [];
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const length = cuts[turn % cuts.length]!;
          read.push(...reader.read(stream.subarray(at, at + length)));
          at += length;
        }
        expect(read.map(plain)).toEqual(sent.map(plain));
      }),
    );
  });

  it("refuses a frame above the limit as soon as its header is complete", () => {
    fc.assert(
      fc.property(fc.integer({ min: 101, max: 0xffff_ffff }), (length) => {
        const header = Buffer.alloc(5);
        header.writeUInt32LE(length);
        expect(() => frameReader(() => 100).read(header)).toThrow(/over the limit of 100/);
      }),
    );
  });

  it("never returns more bytes than it was given, for any bytes", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (chunks) => {
        const reader = frameReader(() => 1_000);
        let given = 0;
        let returned = 0;
        try {
          for (const chunk of chunks) {
            given += chunk.length;
            for (const { body } of reader.read(chunk)) returned += 5 + body.length;
            expect(returned).toBeLessThanOrEqual(given);
          }
        } catch (error) {
          expect(error).toMatchObject({ code: "too_large" });
        }
      }),
    );
  });
});

describe("the messages", () => {
  it("keep every text, also half a surrogate pair", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 16 }), fc.nat(), (texts, id) => {
        const halves = [...texts.slice(1), `${texts[0]}\ud83d`];
        expect(pass({ name: "embed", id, purpose: "query", texts: halves })).toEqual({
          name: "embed",
          id,
          purpose: "query",
          texts: halves,
        });
      }),
    );
  });

  it("keep every bit of a vector", () => {
    fc.assert(
      fc.property(fc.float32Array(), fc.nat(), (values, id) => {
        const read = pass({ name: "vectors", id, values }) as Extract<Message, { name: "vectors" }>;
        expect(Buffer.from(read.values.buffer).equals(Buffer.from(values.buffer, values.byteOffset, values.byteLength))).toBe(true);
      }),
    );
  });

  it("are refused with an error of the closed list, for any frame", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 255 }),
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((json) => Buffer.from(json)),
        ),
        (type, body) => {
          try {
            decodeMessage({ type, body: Buffer.from(body) });
          } catch (error) {
            expect(error).toMatchObject({ code: "invalid_input" });
          }
        },
      ),
    );
  });
});

function pass(message: Message): Message {
  const [frame] = frameReader(() => FRAME_BYTES).read(encodeMessage(message));
  return decodeMessage(frame!);
}
