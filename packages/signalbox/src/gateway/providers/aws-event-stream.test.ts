import { crc32 } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AwsEventDecoder } from "./aws-event-stream.ts";

function header(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([
    Buffer.from([name.length]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}

/** A message as Bedrock writes it. */
export function message(headers: Readonly<Record<string, string>>, payload: object): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const all = Buffer.concat([prelude, head, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(all));
  return Buffer.concat([all, end]);
}

const chunk = (event: object) =>
  message(
    { ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" },
    { bytes: Buffer.from(JSON.stringify(event)).toString("base64"), p: "padding" },
  );

it("gives the same events wherever the bytes are split", () => {
  const events = [{ type: "message_start", text: "grüße" }, { type: "ping" }, { type: "message_stop" }];
  const bytes = Buffer.concat(events.map(chunk));
  const expected = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  fc.assert(
    fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 20 }), (cuts) => {
      const decoder = new AwsEventDecoder();
      const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
      const parts = places.slice(1).map((end, i) => decoder.push(bytes.subarray(places[i], end)));
      expect(parts.join("")).toBe(expected);
      expect(decoder.isBetweenMessages).toBe(true);
    }),
  );
});

it("turns an exception into an error event", () => {
  const bytes = message(
    { ":message-type": "exception", ":exception-type": "throttlingException" },
    { message: "Too many tokens" },
  );
  expect(new AwsEventDecoder().push(bytes)).toBe(
    'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"Too many tokens"}}\n\n',
  );
});

it("refuses bytes with a changed bit", () => {
  const bytes = chunk({ type: "ping" });
  fc.assert(
    fc.property(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const broken = Buffer.from(bytes);
      broken[at] = (broken[at] ?? 0) ^ change;
      const decoder = new AwsEventDecoder();
      let text = "";
      try {
        text = decoder.push(broken);
      } catch {
        return;
      }
      // A changed length may leave the message incomplete.
      expect([text, decoder.isBetweenMessages]).toEqual(["", false]);
    }),
  );
});
