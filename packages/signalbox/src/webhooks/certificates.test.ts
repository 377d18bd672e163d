/** Certificates of vendors: which are used, how often they are loaded, and deliveries that need them. */
import { createPrivateKey, sign } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../test/support/engines.ts";
import { makeCertificate } from "../../../../test/support/test-certificate.ts";
import type { AgentDeliveries, WebhookEvent } from "../agents/index.ts";
import { webhookKeys } from "../config/webhook-keys.ts";
import { SharedPlaces } from "../core/shared-pool.ts";
import type { OutgoingReply } from "../outgoing/index.ts";
import { Certificates } from "./certificates.ts";
import { DeliveryLog } from "./delivery-log.ts";
import { EntityClaims } from "./entity-claims.ts";
import { Intake } from "./intake.ts";
import { LateDeliveries } from "./late-deliveries.ts";
import { LateDeliveryTable } from "./late-delivery-table.ts";
import { RejectionBudget } from "./rejection-budget.ts";
import { RejectionNotice } from "./rejection-notice.ts";
import { createSources } from "./source.ts";

const DAY = 24 * 60 * 60 * 1000;
const URL = "https://api.paypal.com/v1/notifications/certs/CERT-1";

let rsa: { pem: string; key: string };
let ec: { pem: string; key: string };
let now = Date.now();
let requested: string[] = [];
let answer: () => Promise<OutgoingReply>;
let certificates: Certificates;

const reply = (status: number, body: string): Promise<OutgoingReply> =>
  Promise.resolve({ status, headers: {}, body: Buffer.from(body) });

beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-test-"));
  const make = (kind: "ec" | "rsa") => {
    const { pem, key } = makeCertificate(folder, kind, "DNS:paypal.example", kind);
    return { pem, key: readFileSync(key, "utf8") };
  };
  rsa = make("rsa");
  ec = make("ec");
  rmSync(folder, { recursive: true });
});

beforeEach(() => {
  now = Date.now() + 1000;
  requested = [];
  answer = () => reply(200, rsa.pem);
  const requests = {
    send: ({ url }: { readonly url: string }) => {
      requested.push(url);
      return answer();
    },
  };
  certificates = new Certificates(requests, { now: () => now });
});

describe("a certificate", () => {
  it("is loaded once for deliveries at the same time and later, and again after a day", async () => {
    const keys = await Promise.all([certificates.keyOf(URL), certificates.keyOf(URL)]);
    expect(keys[0]?.asymmetricKeyType).toBe("rsa");
    expect(keys[1]).toBe(keys[0]);
    now += DAY - 1;
    await certificates.keyOf(URL);
    expect(requested).toEqual([URL]);
    now += 2;
    await certificates.keyOf(URL);
    expect(requested).toEqual([URL, URL]);
  });

  it("is not used before and after its time, if it has no RSA key, and if it is none", async () => {
    now = Date.now() + 31 * DAY;
    expect(await certificates.keyOf(`${URL}-late`)).toBeNull();
    now = Date.now() - 2 * DAY;
    expect(await certificates.keyOf(`${URL}-early`)).toBeNull();
    now = Date.now() + 1000;
    answer = () => reply(200, ec.pem);
    expect(await certificates.keyOf(`${URL}-ec`)).toBeNull();
    answer = () => reply(200, "<html>");
    expect(await certificates.keyOf(`${URL}-page`)).toBeNull();
    answer = () => reply(404, "");
    expect(await certificates.keyOf(`${URL}-none`)).toBeNull();
  });

  it("that cannot be loaded is 503, and is tried again with the next delivery", async () => {
    answer = () => reply(500, "");
    await expect(certificates.keyOf(URL)).rejects.toMatchObject({ status: 503 });
    answer = () => Promise.reject(new Error("no route"));
    await expect(certificates.keyOf(URL)).rejects.toMatchObject({ status: 503 });
    answer = () => reply(200, rsa.pem);
    expect(await certificates.keyOf(URL)).not.toBeNull();
  });

  it("that strangers name is loaded a few times a minute, while a known one is used on", async () => {
    await certificates.keyOf(URL);
    answer = () => reply(404, "");
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, (_, n) => certificates.keyOf(`${URL}-${n}`)),
    );
    expect(requested.length).toBeLessThan(20);
    expect(results.some(({ status }) => status === "rejected")).toBe(true);
    expect(await certificates.keyOf(URL)).not.toBeNull();
  });
});

it("a visit succeeds with an answer of 2xx only", async () => {
  await certificates.visit("https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription");
  answer = () => reply(302, "");
  await expect(certificates.visit(URL)).rejects.toMatchObject({ status: 503 });
});

describe("a delivery with a certificate", () => {
  const WEBHOOK = "1JE4291016473214C";
  const TOPIC = "arn:aws:sns:eu-central-1:123456789012:orders";
  const sources = createSources(webhookKeys.parse({}), {
    PAYPAL_WEBHOOK_SECRET: WEBHOOK,
    SNS_WEBHOOK_SECRET: TOPIC,
  });
  const logger = pino({ level: "silent" });
  let opened: OpenedDatabase;
  let delivered: { name: string; event: WebhookEvent }[] = [];
  let intake: Intake;

  beforeAll(async () => {
    const [, open] = ENGINES[0] ?? [];
    if (open === undefined) throw new Error("there is no engine");
    opened = await open();
  });
  afterAll(async () => {
    await opened.database.close();
    await opened.drop();
  });
  beforeEach(() => {
    delivered = [];
    const clock = { now: () => now };
    const agents: AgentDeliveries = {
      hasAgent: () => true,
      agentNames: () => [],
      prepare: () => undefined,
      deliver: ({ name }, event) => {
        delivered.push({ name, event });
        return Promise.resolve({ kind: "processed" });
      },
    };
    intake = new Intake({
      agents,
      inFlight: new SharedPlaces(10),
      clock,
      claims: new EntityClaims(opened.database, () => undefined),
      log: new DeliveryLog(opened.database, logger, { keep: 10, onDropped: () => undefined }),
      notice: new RejectionNotice(logger, clock),
      rejections: new RejectionBudget(clock),
      late: new LateDeliveries({
        nodes: null,
        table: new LateDeliveryTable(opened.database),
        clock,
        logger,
        deliver: () => Promise.reject(new Error("not in this test")),
      }),
      routing: { of: () => undefined, store: () => Promise.reject(new Error("not in this test")) },
      certificates,
      answerWithinMs: 600_000,
      spans: null,
      alertFeed: { current: null },
      counter: { add: () => undefined },
    });
  });

  const receive = async (name: string, body: string, headers: Record<string, string>) => {
    const source = sources.get(name);
    if (source === undefined) throw new Error("the source is built in");
    let released = 0;
    const answer = await intake
      .receive({
        source,
        urlEntity: null,
        headers: { "content-type": "application/json", ...headers },
        body: Buffer.from(body),
        releaseBody: () => (released += 1),
        urls: () => [],
      })
      .then(
        ({ status }) => status,
        (error: { readonly status: number }) => error.status,
      );
    return { status: answer, released };
  };

  it("of PayPal reaches the instance of the payer; a certificate that is unreachable is 503, one of another host 401", async () => {
    const body = JSON.stringify({
      id: "WH-1",
      event_type: "PAYMENT.CAPTURE.COMPLETED",
      resource: { payer: { payer_id: "QYR5Z8XDVJNXQ" } },
    });
    const time = new Date(now).toISOString();
    const text = `id|${time}|${WEBHOOK}|${crc32(body)}`;
    const headers = {
      "paypal-transmission-id": "id",
      "paypal-transmission-time": time,
      "paypal-transmission-sig": sign("sha256", Buffer.from(text), createPrivateKey(rsa.key)).toString(
        "base64",
      ),
      "paypal-auth-algo": "SHA256withRSA",
      "paypal-cert-url": URL,
    };
    answer = () => reply(500, "");
    expect(await receive("paypal", body, headers)).toEqual({ status: 503, released: 1 });
    answer = () => reply(200, rsa.pem);
    expect(await receive("paypal", body, headers)).toEqual({ status: 200, released: 1 });
    expect(await receive("paypal", body.replace("WH-1", "WH-2"), headers)).toMatchObject({ status: 401 });
    const elsewhere = { ...headers, "paypal-cert-url": "https://attacker.example/cert.pem" };
    expect(await receive("paypal", body, elsewhere)).toEqual({ status: 401, released: 1 });
    expect(delivered.map(({ name, event }) => [name, event.type, event.id])).toEqual([
      ["qyr5z8xdvjnxq", "PAYMENT.CAPTURE.COMPLETED", "WH-1"],
    ]);
    expect(requested.every((url) => url === URL)).toBe(true);
  });

  it("of SNS reaches the instance of its topic, and a confirmation is visited and reaches none", async () => {
    const host = "https://sns.eu-central-1.amazonaws.com";
    const signed = (message: Record<string, string>) => {
      const names = Object.keys(message).sort();
      const text = names.map((name) => `${name}\n${message[name]}\n`).join("");
      const signature = sign("sha256", Buffer.from(text), createPrivateKey(rsa.key)).toString("base64");
      return JSON.stringify({
        ...message,
        SignatureVersion: "2",
        Signature: signature,
        SigningCertURL: `${host}/SimpleNotificationService-1.pem`,
      });
    };
    const common = { TopicArn: TOPIC, Timestamp: new Date(now).toISOString() };
    const subscribe = `${host}/?Action=ConfirmSubscription&Token=t`;
    const confirmation = signed({
      ...common,
      Type: "SubscriptionConfirmation",
      MessageId: "1",
      Token: "t",
      Message: "confirm",
      SubscribeURL: subscribe,
    });
    const plain = { "content-type": "text/plain; charset=UTF-8" };
    expect(await receive("sns", confirmation, plain)).toEqual({ status: 200, released: 1 });
    expect(requested.at(-1)).toBe(subscribe);
    const message = JSON.stringify({ "detail-type": "order.created" });
    const notification = signed({ ...common, Type: "Notification", MessageId: "2", Message: message });
    expect(await receive("sns", notification, plain)).toEqual({ status: 200, released: 1 });
    expect(delivered.map(({ event }) => [event.type, event.id])).toEqual([["order.created", "2"]]);
    // SNS must ask again if the confirmation failed.
    answer = () => reply(500, "");
    expect(await receive("sns", confirmation, plain)).toEqual({ status: 503, released: 1 });
  });
});
