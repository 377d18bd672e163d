/**
 * Genuine senders of every built-in source: their bodies and signatures, made with node:crypto only. Bodies are
 * latin1 text.
 */
import type { ConfigFileInput } from "../../../packages/signalbox/src/config/index.ts";
import { createHash, createHmac, createPrivateKey, createPublicKey, sign } from "node:crypto";

type WebhookSourceInput = NonNullable<NonNullable<ConfigFileInput["webhooks"]>["sources"]>[string];

/** The server's clock is fixed, so that kept cases stay valid. */
export const NOW = 1_800_000_000_000;
export const HOST = "hooks.example.com";
const SECRET = "a-secret-of-the-fuzzer";
const STANDARD_KEY = Buffer.from("a standard key of the fuzzer 0123").toString("base64");

export interface Post {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Sender {
  readonly source: string;
  /** The configuration entry, unless the source is built in. */
  readonly config?: WebhookSourceInput;
  readonly secrets: Readonly<Record<string, string>>;
  /** Headers that carry the signature or are covered by it. */
  readonly covered: readonly string[];
  readonly signsBody: boolean;
  readonly signsUrl: boolean;
  readonly signsTime: boolean;
  /** A body that the source accepts, about one entity. */
  body(serial: number): string;
  /** The part that the sender adds to the URL. */
  query?(body: string): string;
  headers(body: string, atMs: number, path: string): Record<string, string>;
  /** True if a changed header or body is the same message by the rules of the scheme. */
  isSameMessage(original: Post, changed: Post): boolean;
}

const hmac = (algorithm: string, key: string | Buffer, text: string, encoding: "hex" | "base64") =>
  createHmac(algorithm, key).update(Buffer.from(text, "latin1")).digest(encoding);
const seconds = (atMs: number) => String(Math.floor(atMs / 1000));
const isTrimmedEqual = (original: Post, changed: Post) => {
  const trimmed = (post: Post) =>
    JSON.stringify([
      post.path,
      post.body,
      Object.entries(post.headers).map(([name, value]) => [name, value.trim()]),
    ]);
  return trimmed(original) === trimmed(changed);
};

/** A header with a list stays valid while the right signature is one of its elements. */
const listsTheSame = (name: string, separator: string) => (original: Post, changed: Post) => {
  const elements = (changed.headers[name] ?? "").split(separator).map((element) => element.trim());
  const others = { ...changed, headers: { ...changed.headers, [name]: original.headers[name] ?? "" } };
  return elements.includes(original.headers[name] ?? "") && isTrimmedEqual(original, others);
};

interface BodySigner {
  readonly source: string;
  readonly header: string;
  readonly variable?: string;
  /** Additional headers that are not covered. */
  readonly beside?: Readonly<Record<string, string>>;
  value(body: string): string;
  body(serial: number): string;
  readonly isSameMessage?: Sender["isSameMessage"];
}

function bodySigner({
  source,
  header,
  value,
  body,
  variable,
  beside = {},
  isSameMessage = isTrimmedEqual,
}: BodySigner): Sender {
  return {
    source,
    secrets: { [variable ?? `${source.toUpperCase()}_WEBHOOK_SECRET`]: SECRET },
    covered: [header],
    signsBody: true,
    signsUrl: false,
    signsTime: false,
    body,
    headers: (text) => ({ ...beside, [header]: value(text) }),
    isSameMessage,
  };
}

function standardSigner(source: string, prefix: string, config?: WebhookSourceInput): Sender {
  const name = `${prefix}-signature`;
  return {
    source,
    ...(config === undefined ? {} : { config }),
    secrets: { [`${source.toUpperCase()}_WEBHOOK_SECRET`]: `whsec_${STANDARD_KEY}` },
    covered: [`${prefix}-id`, `${prefix}-timestamp`, name],
    signsBody: true,
    signsUrl: false,
    signsTime: true,
    body: (serial) => `{"type":"t","data":{"id":"e${serial % 9}"},"n":${serial}}`,
    headers(body, atMs) {
      const id = `msg_${hmac("sha256", "id", body, "hex").slice(0, 12)}`;
      const signature = hmac(
        "sha256",
        Buffer.from(STANDARD_KEY, "base64"),
        `${id}.${seconds(atMs)}.${body}`,
        "base64",
      );
      return { [`${prefix}-id`]: id, [`${prefix}-timestamp`]: seconds(atMs), [name]: `v1,${signature}` };
    },
    isSameMessage: listsTheSame(name, " "),
  };
}

const DISCORD_SEED = Buffer.alloc(32, 7);
const discordPrivate = createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), DISCORD_SEED]),
  format: "der",
  type: "pkcs8",
});
const discordPublic = createPublicKey(discordPrivate)
  .export({ format: "der", type: "spki" })
  .subarray(-32)
  .toString("hex");

const plainBody = (serial: number) =>
  `{"id":"d${serial}","type":"t","entity_id":"e${serial % 9}","text":"Z\xc3\xbcrich"}`;

/** Name and value of every field, sorted: what Twilio signs after the URL. */
function formFields(body: string): string | null {
  try {
    const pairs = body
      .split("&")
      .filter((pair) => pair !== "")
      .map((pair) => {
        const [name = "", ...rest] = pair.split("=");
        const decode = (text: string) =>
          decodeURIComponent(Buffer.from(text.replaceAll("+", " "), "latin1").toString());
        return [decode(name), decode(rest.join("="))] as const;
      });
    const unique = new Map(pairs.map((pair) => [JSON.stringify(pair), pair]));
    return [...unique.values()]
      .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : 1))
      .map((pair) => pair.join(""))
      .join("");
  } catch {
    return null;
  }
}

const jsonHash = (body: string) => createHash("sha256").update(Buffer.from(body, "latin1")).digest("hex");

/** Configured sources: variants of the built-in ones with other names or settings. */
const CONFIGURED: readonly Sender[] = [
  {
    // The older header is accepted if the newer one is missing.
    ...bodySigner({
      source: "hubbed",
      header: "x-hub-signature-256",
      value: (body) => `sha256=${hmac("sha256", SECRET, body, "hex")}`,
      body: plainBody,
    }),
    config: { scheme: "generic" },
  },
  {
    source: "timed",
    config: { scheme: "generic", timestamped: true },
    secrets: { TIMED_WEBHOOK_SECRET: SECRET },
    covered: ["x-signature", "x-timestamp", "x-event-id"],
    signsBody: true,
    signsUrl: false,
    signsTime: true,
    body: plainBody,
    headers(body, atMs) {
      const id = `event-${hmac("sha256", "id", body, "hex").slice(0, 12)}`;
      return {
        "x-timestamp": seconds(atMs),
        "x-event-id": id,
        "x-signature": `sha256=${hmac("sha256", SECRET, `${seconds(atMs)}.${id}.${body}`, "hex")}`,
      };
    },
    isSameMessage: isTrimmedEqual,
  },
  {
    ...standardSigner("labsigned", "webhook", { scheme: "gitlab" }),
    body: (serial) =>
      `{"object_kind":"push","project":{"path_with_namespace":"g/p${serial % 9}"},"n":${serial}}`,
  },
  {
    source: "twiliojson",
    config: { scheme: "twilio" },
    secrets: { TWILIOJSON_WEBHOOK_SECRET: SECRET },
    covered: ["x-twilio-signature"],
    signsBody: true,
    signsUrl: true,
    signsTime: false,
    body: (serial) => `{"AccountSid":"AC${serial % 9}","MessageSid":"SM${serial}","Body":"Z\xc3\xbcrich"}`,
    query: (body) => `bodySHA256=${jsonHash(body)}`,
    headers: (_body, _atMs, path) => ({
      "x-twilio-signature": createHmac("sha1", SECRET).update(`http://${HOST}${path}`).digest("base64"),
    }),
    isSameMessage: isTrimmedEqual,
  },
];

const BUILT_IN: readonly Sender[] = [
  bodySigner({
    source: "generic",
    variable: "WEBHOOK_SECRET",
    header: "x-signature",
    value: (body) => `sha256=${hmac("sha256", SECRET, body, "hex")}`,
    body: plainBody,
  }),
  bodySigner({
    source: "github",
    header: "x-hub-signature-256",
    value: (body) => `sha256=${hmac("sha256", SECRET, body, "hex")}`,
    body: (serial) => `{"repository":{"full_name":"a/r${serial % 9}"},"n":${serial}}`,
  }),
  bodySigner({
    source: "shopify",
    header: "x-shopify-hmac-sha256",
    beside: { "x-shopify-shop-domain": "fuzz.myshopify.com" },
    value: (body) => hmac("sha256", SECRET, body, "base64"),
    body: (serial) => `{"id":${serial},"shop":"s"}`,
  }),
  bodySigner({
    source: "linear",
    header: "linear-signature",
    value: (body) => hmac("sha256", SECRET, body, "hex"),
    body: (serial) =>
      `{"organizationId":"o${serial % 9}","type":"Issue","action":"create","webhookTimestamp":${NOW},"n":${serial}}`,
  }),
  bodySigner({
    source: "pagerduty",
    header: "x-pagerduty-signature",
    value: (body) => `v1=${hmac("sha256", SECRET, body, "hex")}`,
    body: (serial) =>
      `{"event":{"id":"i${serial}","event_type":"incident.triggered","data":{"id":"p","service":{"id":"s${serial % 9}"}}}}`,
    isSameMessage: listsTheSame("x-pagerduty-signature", ","),
  }),
  standardSigner("standard", "webhook"),
  standardSigner("svix", "svix"),
  {
    source: "stripe",
    secrets: { STRIPE_WEBHOOK_SECRET: SECRET },
    covered: ["stripe-signature"],
    signsBody: true,
    signsUrl: false,
    signsTime: true,
    body: (serial) =>
      `{"id":"evt_${serial}","type":"invoice.paid","data":{"object":{"customer":"c${serial % 9}"}}}`,
    headers: (body, atMs) => ({
      "stripe-signature": `t=${seconds(atMs)},v1=${hmac("sha256", SECRET, `${seconds(atMs)}.${body}`, "hex")}`,
    }),
    isSameMessage(original, changed) {
      // Other elements may accompany the one timestamp and the right signature, in any order.
      const elements = (post: Post) =>
        (post.headers["stripe-signature"] ?? "").split(",").map((element) => element.trim());
      const given = elements(changed);
      const isWhole = elements(original).every((element) => given.includes(element));
      return (
        isWhole &&
        given.filter((element) => element.startsWith("t=")).length === 1 &&
        original.body === changed.body
      );
    },
  },
  {
    source: "slack",
    secrets: { SLACK_WEBHOOK_SECRET: SECRET },
    covered: ["x-slack-signature", "x-slack-request-timestamp"],
    signsBody: true,
    signsUrl: false,
    signsTime: true,
    body: (serial) =>
      `{"team_id":"T${serial % 9}","event_id":"Ev${serial}","type":"event_callback","event":{"type":"message"}}`,
    headers: (body, atMs) => ({
      "x-slack-request-timestamp": seconds(atMs),
      "x-slack-signature": `v0=${hmac("sha256", SECRET, `v0:${seconds(atMs)}:${body}`, "hex")}`,
    }),
    isSameMessage: isTrimmedEqual,
  },
  {
    source: "discord",
    secrets: { DISCORD_WEBHOOK_SECRET: discordPublic },
    covered: ["x-signature-ed25519", "x-signature-timestamp"],
    signsBody: true,
    signsUrl: false,
    signsTime: true,
    body: (serial) => `{"id":"i${serial}","type":2,"guild_id":"g${serial % 9}","data":{"name":"x"}}`,
    headers: (body, atMs) => ({
      "x-signature-timestamp": seconds(atMs),
      "x-signature-ed25519": sign(null, Buffer.from(seconds(atMs) + body, "latin1"), discordPrivate).toString(
        "hex",
      ),
    }),
    isSameMessage: isTrimmedEqual,
  },
  {
    source: "gitlab",
    secrets: { GITLAB_WEBHOOK_SECRET: SECRET },
    covered: ["x-gitlab-token"],
    // The secret itself is sent: no part of the message is covered.
    signsBody: false,
    signsUrl: false,
    signsTime: false,
    body: (serial) =>
      `{"object_kind":"push","project":{"path_with_namespace":"g/p${serial % 9}"},"n":${serial}}`,
    headers: () => ({ "x-gitlab-token": SECRET }),
    isSameMessage: isTrimmedEqual,
  },
  {
    source: "twilio",
    secrets: { TWILIO_WEBHOOK_SECRET: SECRET },
    covered: ["x-twilio-signature"],
    signsBody: true,
    signsUrl: true,
    signsTime: false,
    body: (serial) =>
      `AccountSid=AC${serial % 9}&MessageSid=SM${serial}&MessageStatus=sent&Body=hello+w%C3%B6rld&To=%2B15550001`,
    headers: (body, _atMs, path) => ({
      "content-type": "application/x-www-form-urlencoded",
      "x-twilio-signature": createHmac("sha1", SECRET)
        .update(`http://${HOST}${path}${formFields(body) ?? ""}`)
        .digest("base64"),
    }),
    isSameMessage(original, changed) {
      // Two forms that decode to the same fields are one message.
      return (
        original.headers["x-twilio-signature"] === changed.headers["x-twilio-signature"]?.trim() &&
        original.path === changed.path &&
        formFields(original.body) === formFields(changed.body)
      );
    },
  },
];

export const SENDERS: readonly Sender[] = [...BUILT_IN, ...CONFIGURED];
