/** What agents and objects receive of a delivery that was stored for routes, judged by the vendors' own verifiers. */
import { generateKeyPairSync, sign } from "node:crypto";
import { EventWebhook } from "@sendgrid/eventwebhook";
import Stripe from "stripe";
import { expect, it } from "vitest";
import { webhookKeys } from "../config/webhook-keys.ts";
import { readStoredEvent } from "./read-event.ts";
import { signedAsSent } from "./signed-again.ts";
import { createSources } from "./source.ts";

const SECRET = "whsec_of_the_tests";
const NOW = Date.now();
const stripe = new Stripe("sk_test_x");
const mail = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const MAIL_KEY = mail.publicKey.export({ format: "der", type: "spki" }).toString("base64");
const SOURCES = createSources(webhookKeys.parse({}), {
  STRIPE_WEBHOOK_SECRET: SECRET,
  SENDGRID_WEBHOOK_SECRET: MAIL_KEY,
});

function received(name: string, body: string, headers: Record<string, string>, isWhole = true) {
  const source = SOURCES.get(name);
  if (source === undefined) throw new Error("the source is built in");
  const event = readStoredEvent(source, { contentType: null, headers, body: Buffer.from(body) }, NOW);
  return signedAsSent(source, event, { read: () => headers, isWhole }, NOW).headers;
}

const body = '{"id":"evt_1","type":"t"}';
const stripeHeaders = (ageSeconds: number, payload = body) => ({
  "stripe-signature": stripe.webhooks.generateTestHeaderString({
    payload,
    secret: SECRET,
    timestamp: Math.floor(NOW / 1000) - ageSeconds,
  }),
  "x-other": "kept",
});
const isStripes = (payload: string, headers: ReturnType<typeof received>) =>
  stripe.webhooks.constructEvent(payload, String(headers["stripe-signature"]), SECRET).id;

it("the sender's own signature is handed on while its time is within the window", () => {
  const headers = stripeHeaders(100);
  expect(received("stripe", body, headers)).toEqual(headers);
});

it("the headers are read when an agent asks for them, which most do not", () => {
  const source = SOURCES.get("stripe");
  if (source === undefined) throw new Error("the source is built in");
  const event = readStoredEvent(source, { contentType: null, headers: {}, body: Buffer.from(body) }, NOW);
  let reads = 0;
  const read = () => ({ "x-read": String(++reads) });
  const signed = signedAsSent(source, event, { read, isWhole: true }, NOW);
  expect(reads).toBe(0);
  expect([signed.headers["x-read"], signed.headers["x-read"]]).toEqual(["1", "1"]);
});

it("a signature whose time is over is replaced by a new one", () => {
  const headers = stripeHeaders(3600);
  expect(() => isStripes(body, headers)).toThrow();
  const found = received("stripe", body, headers);
  expect([isStripes(body, found), found["x-other"]]).toEqual(["evt_1", "kept"]);
});

it("an item of a list, whose bytes the sender has not signed, is signed anew", () => {
  const headers = stripeHeaders(0, `[${body}]`);
  expect(isStripes(body, received("stripe", body, headers, false))).toBe("evt_1");
});

it("a signature that only the vendor can make is handed on in any case", () => {
  const time = String(Math.floor(NOW / 1000) - 3 * 24 * 3600);
  const list = '[{"email":"a@example.com","event":"open"}]';
  const signature = sign("sha256", Buffer.from(time + list), mail.privateKey).toString("base64");
  const headers = {
    "x-twilio-email-event-webhook-signature": signature,
    "x-twilio-email-event-webhook-timestamp": time,
  };
  const found = received("sendgrid", list, headers);
  expect(found).toEqual(headers);
  const verifier = new EventWebhook();
  const key = verifier.convertPublicKeyToECDSA(MAIL_KEY);
  expect(
    verifier.verifySignature(key, list, String(found["x-twilio-email-event-webhook-signature"]), time),
  ).toBe(true);
});
