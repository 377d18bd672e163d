/**
 * Each scheme against its vendor's own package: what the package signs is accepted here, or what is signed here is accepted there. Then
 * every single byte of the body and of each header that the signature covers is changed, and nothing of it may pass.
 */
import { generateKeyPairSync } from "node:crypto";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { LinearWebhookClient } from "@linear/sdk/webhooks";
import { sign as octokitSign, verify as octokitVerify } from "@octokit/webhooks-methods";
import { isValidSlackRequest } from "@slack/bolt";
import "@shopify/shopify-api/adapters/node";
import { shopifyApi } from "@shopify/shopify-api";
import { verifyKey } from "discord-interactions";
import fc from "fast-check";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as SvixWebhook } from "svix";
import twilio from "twilio";
import { describe, expect, it } from "vitest";
import {
  createBodyHmacScheme,
  discordScheme,
  genericScheme,
  githubScheme,
  gitlabScheme,
  linearScheme,
  pagerdutyScheme,
  type Scheme,
  shopifyScheme,
  slackScheme,
  standardScheme,
  stripeScheme,
  svixScheme,
  twilioScheme,
} from "./index.ts";

const NOW = 1_800_000_000_000;
const URL_ = "https://hooks.example.com/webhooks/twilio";
const SECRET = "It's a Secret to Everybody";
const STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = Buffer.from(JSON.stringify({ id: "evt_1", type: "invoice.paid", text: "Zürich ✓", n: 1.5 }));
const FORM_BODY = Buffer.from("AccountSid=AC1&Body=hello+w%C3%B6rld&MessageStatus=sent&To=%2B15550001");

const discordPair = generateKeyPairSync("ed25519");
const DISCORD_PUBLIC = discordPair.publicKey
  .export({ format: "der", type: "spki" })
  .subarray(-32)
  .toString("hex");
const DISCORD_SEED = discordPair.privateKey
  .export({ format: "der", type: "pkcs8" })
  .subarray(-32)
  .toString("hex");

interface Attempt {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly secrets?: readonly string[];
  readonly now?: number;
  readonly url?: string;
}

function verdict(scheme: Scheme, attempt: Attempt, secret: string) {
  const keys = (attempt.secrets ?? [secret]).map((text) => scheme.toKey(text));
  const windowMs = (scheme.windowSeconds ?? 0) * 1000;
  const delivery = { headers: attempt.headers, body: attempt.body, urls: () => [attempt.url ?? URL_] };
  return scheme.verify(delivery, keys, attempt.now ?? NOW, windowMs);
}

interface Case {
  readonly title: string;
  readonly scheme: Scheme;
  readonly secret: string;
  readonly signingSecret?: string;
  readonly body?: Buffer;
  readonly extraHeaders?: Record<string, string>;
  /** The vendor's package on the parts signed here; rejects or is false when it disagrees. */
  vendor?(headers: Record<string, string>, body: Buffer, url: string): unknown;
}

const CASES: readonly Case[] = [
  { title: "generic", scheme: genericScheme, secret: SECRET },
  {
    title: "github",
    scheme: githubScheme,
    secret: SECRET,
    vendor: (headers, body) => octokitVerify(SECRET, body.toString(), headers["x-hub-signature-256"] ?? ""),
  },
  {
    title: "stripe",
    scheme: stripeScheme,
    secret: "whsec_test_secret",
    vendor: (headers, body) =>
      new Stripe("sk_test_1").webhooks.constructEvent(
        body,
        headers["stripe-signature"] ?? "",
        "whsec_test_secret",
        300,
        undefined,
        NOW,
      ),
  },
  {
    title: "slack",
    scheme: slackScheme,
    secret: SECRET,
    vendor: (headers, body) =>
      isValidSlackRequest({
        signingSecret: SECRET,
        body: body.toString(),
        headers: {
          "x-slack-signature": headers["x-slack-signature"] ?? "",
          "x-slack-request-timestamp": Number(headers["x-slack-request-timestamp"]),
        },
        nowMilliseconds: NOW,
      }),
  },
  {
    title: "twilio with a form",
    scheme: twilioScheme,
    secret: SECRET,
    body: FORM_BODY,
    extraHeaders: { "content-type": "application/x-www-form-urlencoded; charset=utf-8" },
    vendor: (headers, body, url) =>
      twilio.validateRequest(
        SECRET,
        headers["x-twilio-signature"] ?? "",
        url,
        Object.fromEntries(new URLSearchParams(body.toString())),
      ),
  },
  {
    title: "twilio with JSON",
    scheme: twilioScheme,
    secret: SECRET,
    extraHeaders: { "content-type": "application/json" },
    vendor: (headers, body, url) =>
      twilio.validateRequestWithBody(SECRET, headers["x-twilio-signature"] ?? "", url, body.toString()),
  },
  {
    title: "shopify",
    scheme: shopifyScheme,
    secret: SECRET,
    vendor: async (headers, body) => (await shopifyValidate(headers, body)).valid,
  },
  {
    title: "standard",
    scheme: standardScheme,
    secret: STANDARD_SECRET,
    // The package takes the time from the system, so the accepting direction is its own test below.
  },
  { title: "svix", scheme: svixScheme, secret: STANDARD_SECRET },
  { title: "gitlab with a token", scheme: gitlabScheme, secret: SECRET },
  { title: "gitlab with a signing token", scheme: gitlabScheme, secret: STANDARD_SECRET },
  {
    title: "linear",
    scheme: linearScheme,
    secret: SECRET,
    body: Buffer.from(JSON.stringify({ type: "Issue", webhookTimestamp: Date.now() })),
    vendor: (headers, body) =>
      new LinearWebhookClient(SECRET).verify(body, headers["linear-signature"] ?? ""),
  },
  { title: "pagerduty", scheme: pagerdutyScheme, secret: SECRET },
  {
    title: "discord",
    scheme: discordScheme,
    secret: DISCORD_PUBLIC,
    signingSecret: DISCORD_SEED,
    vendor: (headers, body) =>
      verifyKey(
        body,
        headers["x-signature-ed25519"] ?? "",
        headers["x-signature-timestamp"] ?? "",
        DISCORD_PUBLIC,
      ),
  },
  {
    title: "an HMAC of one's own",
    scheme: createBodyHmacScheme({
      name: "gitea",
      headers: ["x-gitea-signature"],
      algorithm: "sha512",
      encoding: "base64",
      prefix: "sig:",
    }),
    secret: SECRET,
  },
];

function shopifyValidate(headers: Record<string, string>, body: Buffer) {
  const shopify = shopifyApi({
    apiKey: "key",
    apiSecretKey: SECRET,
    hostName: "hooks.example.com",
    isEmbeddedApp: false,
    apiVersion: "2025-10" as never,
    logger: { log: () => undefined },
  });
  const request = new IncomingMessage(new Socket());
  const all = {
    ...headers,
    "x-shopify-topic": "orders/create",
    "x-shopify-shop-domain": "shop.myshopify.com",
    "x-shopify-api-version": "2025-10",
    "x-shopify-webhook-id": "1",
  };
  for (const [name, value] of Object.entries(all)) request.headers[name] = value;
  return shopify.webhooks.validate({ rawBody: body.toString(), rawRequest: request });
}

function signed({ scheme, secret, signingSecret, body = BODY, extraHeaders = {} }: Case) {
  const parts = scheme.sign({
    secret: signingSecret ?? secret,
    body,
    now: NOW,
    deliveryId: "msg_1",
    url: URL_,
  });
  return {
    proof: parts.headers,
    headers: { ...extraHeaders, ...parts.headers },
    body,
    url: parts.query === undefined ? URL_ : `${URL_}?${parts.query}`,
  };
}

describe.each(CASES)("$title", (testCase) => {
  const { scheme, secret } = testCase;

  it("accepts what it signed itself, and so does the vendor's package", async () => {
    const attempt = signed(testCase);
    expect(verdict(scheme, attempt, secret)).toBeNull();
    if (testCase.vendor !== undefined) {
      expect(await testCase.vendor(attempt.headers, attempt.body, attempt.url)).not.toBe(false);
    }
  });

  it("refuses every change of a single byte of the body", () => {
    const attempt = signed(testCase);
    for (let at = 0; at < attempt.body.length; at++) {
      for (const bit of [0x01, 0x20, 0x80]) {
        const body = Buffer.from(attempt.body);
        body[at] = (body[at] ?? 0) ^ bit;
        // A token proves who sent it and says nothing about the body; a form is signed as its fields, not as its bytes.
        if (testCase.title === "gitlab with a token" || isSameForm(testCase, body)) continue;
        expect(verdict(scheme, { ...attempt, body }, secret), `byte ${at}`).not.toBeNull();
      }
    }
  });

  it("refuses every change of a single byte of what proves it", () => {
    const attempt = signed(testCase);
    for (const [name, value] of Object.entries(attempt.proof)) {
      for (let at = 0; at < value.length; at++) {
        for (const bit of [0x01, 0x02, 0x20]) {
          const changed =
            value.slice(0, at) + String.fromCharCode(value.charCodeAt(at) ^ bit) + value.slice(at + 1);
          const headers = { ...attempt.headers, [name]: changed };
          expect(verdict(scheme, { ...attempt, headers }, secret), `${name}: ${changed}`).not.toBeNull();
        }
      }
    }
  });

  it("refuses a missing, empty, cut and doubled proof", () => {
    const attempt = signed(testCase);
    for (const [name, value] of Object.entries(attempt.proof)) {
      for (const changed of [
        undefined,
        "",
        value.slice(0, -1),
        `${value} `,
        `${value}, ${value}x`,
        ` ${value}`,
      ]) {
        const headers = { ...attempt.headers, [name]: changed as string };
        if (changed === undefined) delete (headers as Record<string, unknown>)[name];
        const isLegalList = testCase.title === "pagerduty" || /standard|svix|signing/.test(testCase.title);
        // Spaces around a header's value never arrive; splitting at commas drops them once more.
        if (testCase.title === "stripe" && changed?.trim() === value) continue;
        if (isLegalList && changed !== undefined && changed.includes(value)) continue;
        expect(verdict(scheme, { ...attempt, headers }, secret), `${name}: ${changed}`).not.toBeNull();
      }
    }
  });

  it("accepts any of several active secrets and no other", () => {
    const attempt = signed(testCase);
    const other =
      scheme === discordScheme
        ? generateKeyPairSync("ed25519")
            .publicKey.export({ format: "der", type: "spki" })
            .subarray(-32)
            .toString("hex")
        : secret.startsWith("whsec_")
          ? "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXI="
          : "another secret";
    expect(verdict(scheme, { ...attempt, secrets: [other, secret] }, secret)).toBeNull();
    expect(verdict(scheme, { ...attempt, secrets: [other] }, secret)).not.toBeNull();
    expect(verdict(scheme, { ...attempt, secrets: [] }, secret)).not.toBeNull();
  });

  it("holds its replay window on both sides", () => {
    if (scheme.windowSeconds === null || testCase.title === "gitlab with a token") return;
    const attempt = signed(testCase);
    const windowMs = scheme.windowSeconds * 1000;
    expect(verdict(scheme, { ...attempt, now: NOW + windowMs }, secret)).toBeNull();
    expect(verdict(scheme, { ...attempt, now: NOW - windowMs }, secret)).toBeNull();
    expect(verdict(scheme, { ...attempt, now: NOW + windowMs + 1 }, secret)).toBe("timestamp_outside_window");
    expect(verdict(scheme, { ...attempt, now: NOW - windowMs - 1 }, secret)).toBe("timestamp_outside_window");
  });

  it("signs and accepts any bytes, and refuses any other bytes", () => {
    if (testCase.title === "twilio with a form" || testCase.title === "gitlab with a token") return;
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 64 }),
        fc.uint8Array({ maxLength: 64 }),
        (bytes, others) => {
          const body = Buffer.concat([Buffer.from("{"), bytes]);
          const attempt = signed({ ...testCase, body });
          expect(verdict(scheme, attempt, secret)).toBeNull();
          const changed = Buffer.concat([Buffer.from("{"), others]);
          if (!changed.equals(body))
            expect(verdict(scheme, { ...attempt, body: changed }, secret)).not.toBeNull();
        },
      ),
      { numRuns: 50 },
    );
  });
});

/** True when a changed form body still decodes to the same fields (`%C3` and `%c3`). */
function isSameForm(testCase: Case, body: Buffer): boolean {
  if (testCase.title !== "twilio with a form") return false;
  try {
    const decode = (text: string) => decodeURIComponent(text.replaceAll("+", " "));
    return decode(body.toString()) === decode(FORM_BODY.toString());
  } catch {
    return false;
  }
}

describe("signed by the vendors' packages", () => {
  it("github: @octokit/webhooks-methods", async () => {
    const headers = { "x-hub-signature-256": await octokitSign(SECRET, BODY.toString()) };
    expect(verdict(githubScheme, { headers, body: BODY }, SECRET)).toBeNull();
    expect(verdict(genericScheme, { headers, body: BODY }, SECRET)).toBeNull();
  });

  it("stripe: generateTestHeaderString, also beside a second signature of a rotated secret", () => {
    const stripe = new Stripe("sk_test_1");
    const make = (secret: string) =>
      stripe.webhooks.generateTestHeaderString({ payload: BODY.toString(), secret, timestamp: NOW / 1000 });
    expect(
      verdict(stripeScheme, { headers: { "stripe-signature": make("whsec_a") }, body: BODY }, "whsec_a"),
    ).toBeNull();
    const both = `${make("whsec_b")},${make("whsec_a").split(",")[1]},v0=00`;
    expect(
      verdict(stripeScheme, { headers: { "stripe-signature": both }, body: BODY }, "whsec_a"),
    ).toBeNull();
  });

  it("twilio: getExpectedTwilioSignature over a form with repeated fields", () => {
    const body = Buffer.from("b=2&a=1&a=0&a=1&empty=&sp+ace=x%26y");
    const signature = twilio.getExpectedTwilioSignature(SECRET, URL_, {
      b: "2",
      a: ["1", "0", "1"],
      empty: "",
      "sp ace": "x&y",
    });
    const headers = { "x-twilio-signature": signature, "content-type": "application/x-www-form-urlencoded" };
    expect(verdict(twilioScheme, { headers, body }, SECRET)).toBeNull();
  });

  it("standardwebhooks and svix, in both directions", () => {
    const now = Date.now();
    const time = new Date(Math.floor(now / 1000) * 1000);
    for (const [scheme, prefix, vendor] of [
      [standardScheme, "webhook", new StandardWebhook(STANDARD_SECRET)],
      [svixScheme, "svix", new SvixWebhook(STANDARD_SECRET)],
      [svixScheme, "webhook", new SvixWebhook(STANDARD_SECRET)],
      [gitlabScheme, "webhook", new StandardWebhook(STANDARD_SECRET)],
    ] as const) {
      const signature = vendor.sign("msg_1", time, BODY.toString());
      const headers = {
        [`${prefix}-id`]: "msg_1",
        [`${prefix}-timestamp`]: String(time.getTime() / 1000),
        [`${prefix}-signature`]: `v1a,unknown v1,${"A".repeat(43)}= ${signature}`,
      };
      expect(verdict(scheme, { headers, body: BODY, now }, STANDARD_SECRET)).toBeNull();
      const ours = scheme.sign({ secret: STANDARD_SECRET, body: BODY, now, deliveryId: "msg_1", url: URL_ });
      expect(vendor.verify(BODY.toString(), ours.headers)).toEqual(JSON.parse(BODY.toString()));
    }
  });

  it("pagerduty: one of several signatures is enough", () => {
    const { headers } = pagerdutyScheme.sign({
      secret: SECRET,
      body: BODY,
      now: NOW,
      deliveryId: "1",
      url: URL_,
    });
    const value = `v1=${"0".repeat(64)},${headers["x-pagerduty-signature"]}`;
    expect(
      verdict(pagerdutyScheme, { headers: { "x-pagerduty-signature": value }, body: BODY }, SECRET),
    ).toBeNull();
  });
});

describe("what a signature does not cover", () => {
  it("twilio: a body that is neither a form nor hashed in the address is refused, although the address is signed", () => {
    const signature = twilio.getExpectedTwilioSignature(SECRET, URL_, {});
    const headers = { "x-twilio-signature": signature, "content-type": "application/json" };
    expect(verdict(twilioScheme, { headers, body: BODY }, SECRET)).toBe("signature_malformed");
  });

  it("twilio: a form whose escapes decode to replacement characters is refused", () => {
    const body = Buffer.from("a=%FF");
    const signature = twilio.getExpectedTwilioSignature(SECRET, URL_, { a: "\ufffd" });
    const headers = { "x-twilio-signature": signature, "content-type": "application/x-www-form-urlencoded" };
    expect(verdict(twilioScheme, { headers, body }, SECRET)).toBe("signature_malformed");
  });

  it("gitlab: a signing token sent as a plain token proves nothing", () => {
    const headers = { "x-gitlab-token": STANDARD_SECRET };
    expect(verdict(gitlabScheme, { headers, body: BODY }, STANDARD_SECRET)).toBe("signature_mismatch");
  });

  it("stripe: a header with two times is refused", () => {
    const { headers } = stripeScheme.sign({
      secret: SECRET,
      body: BODY,
      now: NOW,
      deliveryId: "1",
      url: URL_,
    });
    const value = `t=${NOW / 1000 - 1},${headers["stripe-signature"]}`;
    expect(verdict(stripeScheme, { headers: { "stripe-signature": value }, body: BODY }, SECRET)).toBe(
      "signature_malformed",
    );
  });

  it("discord: a text that is no public key is named as such, without being shown", () => {
    expect(() => discordScheme.toKey("not-a-key")).toThrow(/64 hexadecimal digits/);
  });
});
