import fc from "fast-check";
import { SignalboxError } from "@signalbox/protocol";
import { expect, it } from "vitest";
import type { DeliveryOutcome } from "../../contracts/agent-deliveries.ts";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { PacketError } from "../../engines/node-link/index.ts";
import { encodeFailure } from "./carried-error.ts";
import { decodeDelivery, decodeOutcome, encodeDelivery, encodeOutcome } from "./delivery-packet.ts";

const text = fc.string({ unit: "binary" });
const headerName = fc.stringMatching(/^[a-z][a-z-]{0,12}$/);
const headers = fc.dictionary(headerName, text, { noNullPrototype: true });
const anyDelivery = fc
  .record({
    target: fc.record({ account: text, agent: text, name: text }),
    isForm: fc.boolean(),
    payload: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.jsonValue(), { noNullPrototype: true }),
    event: fc.record({
      id: text,
      source: text,
      type: text,
      action: fc.option(text),
      timestamp: text,
      title: text,
      description: fc.option(text),
      url: fc.option(text),
      actor: fc.option(text),
    }),
    headers,
    signed: fc.option(fc.dictionary(headerName, fc.oneof(text, fc.array(text)), { noNullPrototype: true }), {
      nil: undefined,
    }),
  })
  .map(({ target, isForm, payload, event, headers: visible, signed }) => ({
    target,
    event: {
      ...event,
      // The body of a form is not the JSON of its payload.
      payload: JSON.parse(JSON.stringify(payload)) as unknown,
      rawBody: Buffer.from(isForm ? "a=b" : JSON.stringify(payload)),
      headers: isForm ? { ...visible, "content-type": "application/x-www-form-urlencoded" } : visible,
    },
    signed: signed === undefined ? undefined : { headers: { ...visible, ...signed } },
  }));

it("a delivery arrives as it was sent", () => {
  fc.assert(
    fc.property(anyDelivery, (delivery) => {
      const { target, event, signed } = decodeDelivery(encodeDelivery(delivery));
      expect(target).toEqual(delivery.target);
      expect(signed).toEqual(delivery.signed);
      expect({ ...event, rawBody: Buffer.from(event.rawBody) }).toEqual(delivery.event);
    }),
  );
});

it("the body is not sent twice", () => {
  const rawBody = Buffer.from(JSON.stringify({ text: "x".repeat(100_000) }));
  const event = {
    id: "1",
    source: "generic",
    type: "t",
    action: null,
    timestamp: "",
    title: "",
    description: null,
    url: null,
    actor: null,
    headers: {},
    rawBody,
    payload: JSON.parse(rawBody.toString()) as unknown,
  };
  const target = { account: "default", agent: "webhook-agent", name: "a" };
  expect(encodeDelivery({ target, event, signed: undefined }).length).toBeLessThan(rawBody.length + 500);
});

it("bytes that are not a delivery are refused", () => {
  fc.assert(
    fc.property(
      anyDelivery,
      fc.nat(),
      fc.uint8Array({ minLength: 1, maxLength: 8 }),
      (delivery, at, noise) => {
        const bytes = encodeDelivery(delivery);
        const start = at % bytes.length;
        bytes.set(noise.subarray(0, bytes.length - start), start);
        try {
          decodeDelivery(bytes.subarray(0, at % 3 === 0 ? start : bytes.length));
        } catch (error) {
          expect(error).toBeInstanceOf(PacketError);
        }
      },
    ),
  );
});

it.each<DeliveryOutcome>([
  { kind: "processed" },
  { kind: "queued" },
  { kind: "duplicate" },
  { kind: "answered", status: 418, contentType: "text/plain; charset=utf-8", body: "tea \u{1f375} \ud800" },
])("the outcome $kind arrives as it was", (outcome) => {
  expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
});

function carried(error: unknown): unknown {
  try {
    return decodeOutcome(encodeFailure(error));
  } catch (thrown) {
    return thrown;
  }
}

it("an error of the table keeps everything that the client sees", () => {
  const error = new SignalboxError("webhook_rejected", {
    message: "no such customer",
    headers: { "retry-after": "3" },
    status: 422,
    cause: new Error("secret"),
  });
  const received = carried(error) as SignalboxError;
  expect(received).toBeInstanceOf(SignalboxError);
  const { id, status, message, headers: sent, code } = received;
  expect({ id, status, message, headers: sent, code }).toEqual({
    id: "webhook_rejected",
    status: 422,
    message: "no such customer",
    headers: { "retry-after": "3" },
    code: error.code,
  });
  // For the log.
  expect(received.cause).toMatchObject({ message: "secret" });
});

it("an error of the handler keeps its name, its message and its class", () => {
  const custom = Object.assign(new Error("empty"), { name: "TankError" });
  expect(carried(custom)).toMatchObject({ name: "TankError", message: "empty" });
  expect(carried(new TypeError("not a tank"))).toBeInstanceOf(TypeError);
  expect(carried("thrown text")).toBe("thrown text");
});

it("an instance that is elsewhere or was taken is reported as that", () => {
  expect(carried(new InstanceElsewhereError("7"))).toMatchObject({ node: "7" });
  expect(carried(new InstanceFencedError("taken"))).toBeInstanceOf(InstanceFencedError);
});
