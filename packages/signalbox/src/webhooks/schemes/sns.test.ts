/** The scheme of SNS against `sns-validator`, the verifier of AWS, which gets the certificate from the test instead of the network. */
import { createPrivateKey, sign, X509Certificate } from "node:crypto";
import { EventEmitter } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import MessageValidator from "sns-validator";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { makeCertificate } from "../../../../../test/support/test-certificate.ts";
import { snsScheme } from "./index.ts";
import { NOW, verdict } from "./scheme-contract.ts";

const TOPIC = "arn:aws:sns:eu-central-1:123456789012:orders";
const CERTIFICATE = "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0123abcd.pem";

let pem = "";
let privateKey: ReturnType<typeof createPrivateKey>;

beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-test-"));
  const made = makeCertificate(folder, "sns.amazonaws.com", "DNS:sns.amazonaws.com", "rsa");
  pem = made.pem;
  privateKey = createPrivateKey(readFileSync(made.key));
  rmSync(folder, { recursive: true });
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Message = Record<string, string>;

const NOTIFICATION: Message = {
  Type: "Notification",
  MessageId: "m-1",
  TopicArn: TOPIC,
  Subject: "An order",
  Message: 'first line\nsecond line with "quotes" and ü',
  Timestamp: new Date(NOW).toISOString(),
};
const CONFIRMATION: Message = {
  Type: "SubscriptionConfirmation",
  MessageId: "m-2",
  TopicArn: TOPIC,
  Token: "abc",
  Message: "You have chosen to subscribe",
  SubscribeURL: "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription",
  Timestamp: new Date(NOW).toISOString(),
};

function signed(message: Message, version: "1" | "2"): Message {
  const names =
    message["Type"] === "Notification"
      ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
      : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
  const text = names
    .filter((name) => message[name] !== undefined)
    .map((name) => `${name}\n${message[name]}\n`)
    .join("");
  const signature = sign(version === "1" ? "sha1" : "sha256", Buffer.from(text), privateKey);
  return {
    ...message,
    SignatureVersion: version,
    Signature: signature.toString("base64"),
    SigningCertURL: CERTIFICATE,
  };
}

function check(message: object, secret = TOPIC, now = NOW) {
  const certificate = new X509Certificate(pem).publicKey;
  const scheme: typeof snsScheme = {
    ...snsScheme,
    verify: (delivery, ...rest) => snsScheme.verify({ ...delivery, certificate }, ...rest),
  };
  return verdict(scheme, { headers: {}, body: Buffer.from(JSON.stringify(message)), now }, secret);
}

function vendorAccepts(message: Message): Promise<boolean> {
  vi.spyOn(https, "get").mockImplementation(((_url: string, answered: (response: unknown) => void) => {
    const response = Object.assign(new EventEmitter(), { statusCode: 200 });
    queueMicrotask(() => {
      answered(response);
      response.emit("data", Buffer.from(pem));
      response.emit("end");
    });
    return new EventEmitter();
  }) as never);
  return new Promise((resolve) => {
    new MessageValidator().validate(message, (error) => resolve(error === null));
  });
}

describe.each(["1", "2"] as const)("a message with version %s of the signature", (version) => {
  it.each([
    ["a notification", NOTIFICATION],
    ["a notification without a subject", { ...NOTIFICATION, Subject: undefined as never }],
    ["a confirmation", CONFIRMATION],
  ])("is accepted if it is %s, and by the verifier of AWS", async (_title, plain) => {
    const message = JSON.parse(JSON.stringify(signed(plain, version))) as Message;
    expect(await vendorAccepts(message)).toBe(true);
    expect(check(message)).toBeNull();
  });

  it("is refused after a change of any signed member, and with one more", () => {
    for (const plain of [NOTIFICATION, CONFIRMATION]) {
      const message = signed(plain, version);
      for (const name of Object.keys(plain))
        expect(check({ ...message, [name]: `${message[name]}x` }), name).not.toBeNull();
    }
    const { Subject: _subject, ...bare } = NOTIFICATION;
    expect(check({ ...signed(bare, version), Subject: "added" })).toBe("signature_mismatch");
    expect(check({ ...signed(NOTIFICATION, version), SignatureVersion: version === "1" ? "2" : "1" })).toBe(
      "signature_mismatch",
    );
  });
});

it("sns accepts its own topics only: anybody can create another one", () => {
  const message = signed(NOTIFICATION, "2");
  expect(check(message, "arn:aws:sns:eu-central-1:999999999999:orders")).toBe("signature_mismatch");
  expect(() => snsScheme.toKey("orders")).toThrow(/^expected the ARN/);
});

it("sns refuses a message that is older than an hour, or of the future", () => {
  const message = signed(NOTIFICATION, "2");
  expect(check(message, TOPIC, NOW + 3_600_000)).toBeNull();
  expect(check(message, TOPIC, NOW + 3_600_001)).toBe("timestamp_outside_window");
  expect(check(message, TOPIC, NOW - 3_600_001)).toBe("timestamp_outside_window");
});

it("sns refuses members with line ends, which could be read as other members", () => {
  const shifted = signed({ ...NOTIFICATION, MessageId: "m-1\nSubject\nx" }, "2");
  expect(check(shifted)).toBe("signature_malformed");
});

it.each([
  [CERTIFICATE, true],
  ["https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123abcd.pem", false],
  ["https://sns.eu-central-1.amazonaws.com.attacker.example/SimpleNotificationService-0123abcd.pem", false],
  ["https://sns.eu-central-1.amazonaws.com/?Action=GetTopicAttributes", false],
  ["https://bucket.s3.amazonaws.com/SimpleNotificationService-0123abcd.pem", false],
  ["http://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0123abcd.pem", false],
])("sns loads the certificate of %s: %s", (url, isLoaded) => {
  const body = Buffer.from(JSON.stringify({ TopicArn: TOPIC, SigningCertURL: url }));
  const found = snsScheme.certificateUrl?.({ headers: {}, body }, [snsScheme.toKey(TOPIC)]);
  expect(found).toBe(isLoaded ? url : null);
});

it("sns loads no certificate for a topic that is not accepted", () => {
  const body = Buffer.from(JSON.stringify({ TopicArn: `${TOPIC}-other`, SigningCertURL: CERTIFICATE }));
  expect(snsScheme.certificateUrl?.({ headers: {}, body }, [snsScheme.toKey(TOPIC)])).toBeNull();
});
