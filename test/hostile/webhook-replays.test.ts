/** Misuse of a captured genuine delivery, and misuse of the route that tests sources. */
import { createHmac } from "node:crypto";
import twilio from "twilio";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { instanceNames } from "../support/instance-names.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { hexSignature, post, SECRET } from "../support/webhook-sender.ts";

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    environment: {
      WEBHOOK_SECRET: SECRET,
      GITHUB_WEBHOOK_SECRET: SECRET,
      TWILIO_WEBHOOK_SECRET: SECRET,
      TIMED_WEBHOOK_SECRET: SECRET,
    },
    file: { webhooks: { sources: { timed: { scheme: "generic", timestamped: true } } } },
  });
});

afterAll(() => server.stop());

const instances = () => instanceNames(server.dataDir);

describe("a captured Twilio form", () => {
  const FIELDS = { AccountSid: "AC1", Body: "hi", MessageSid: "SM1", MessageStatus: "sent" };
  const captured = () => {
    const signature = twilio.getExpectedTwilioSignature(SECRET, `${server.url}/webhooks/twilio/t`, FIELDS);
    return { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signature };
  };
  const send = (path: string, fields: Record<string, string>) =>
    post(`${server.url}/webhooks/twilio/${path}`, new URLSearchParams(fields).toString(), captured());

  it("a captured form is refused at a URL that contains its first fields", async () => {
    const before = await instances();
    const { AccountSid: _account, ...rest } = FIELDS;
    expect((await send("tAccountSidAC1", rest)).status).toBe(401);
    expect((await send("tA", { ccountSid: "AC1BodyhiMessageSidSM1MessageStatussent" })).status).toBe(400);
    const { Body: _body, ...least } = rest;
    expect((await send("tAccountSidAC1Bodyhi", least)).status).toBe(401);
    expect(await instances()).toEqual(before);
  });

  it("a captured form is refused as JSON with a body hash chosen by the sender", async () => {
    const forged = JSON.stringify({ AccountSid: "AC-victim", Type: "forged" });
    const hash = twilio.getExpectedBodyHash(forged);
    const fields = {
      AccountSid: "AC1",
      Body: `?bodySHA256=${hash}&x=`,
      MessageSid: "SM1",
      MessageStatus: "sent",
    };
    const address = `${server.url}/webhooks/twilio/t`;
    const signature = twilio.getExpectedTwilioSignature(SECRET, address, fields);
    const shifted = `${address}AccountSidAC1Body?bodySHA256=${hash}&x=MessageSidSM1MessageStatussent`;
    expect((await post(shifted, forged, { "x-twilio-signature": signature })).status).toBe(401);
  });

  it("a form must contain the fields that every message and call has", async () => {
    const signed = (fields: Record<string, string>) => {
      const address = `${server.url}/webhooks/twilio`;
      return post(address, new URLSearchParams(fields).toString(), {
        "content-type": "application/x-www-form-urlencoded",
        "x-twilio-signature": twilio.getExpectedTwilioSignature(SECRET, address, fields),
      });
    };
    const lacks = async (fields: Record<string, string>) =>
      (await signed(fields)).body.errors?.[0]?.message ?? "";
    expect(await lacks({ Body: "x", MessageSid: "SM1", MessageStatus: "sent" })).toContain("AccountSid");
    expect(await lacks({ AccountSid: "AC1", MessageStatus: "sent" })).toContain("MessageSid");
    expect(await lacks({ AccountSid: "AC1", CallStatus: "ringing" })).toContain("CallSid");
    for (const fields of [
      FIELDS,
      { AccountSid: "AC1", SmsSid: "SM2", SmsStatus: "received", Body: "x" },
      { AccountSid: "AC1", CallSid: "CA1", CallStatus: "ringing" },
      { AccountSid: "AC1", CallSid: "CA1", RecordingSid: "RE1", RecordingStatus: "completed" },
      { AccountSid: "AC1", EventType: "task.created" },
    ]) {
      expect((await signed(fields)).status).toBe(200);
    }
  });
});

describe("a captured delivery of the timestamped generic scheme", () => {
  const now = () => Math.floor(Date.now() / 1000);
  const BODY = JSON.stringify({ type: "t", entity_id: "timed-entity" });
  const send = (headers: Record<string, string>, path = "timed", body = BODY) =>
    post(`${server.url}/webhooks/${path}`, body, headers);
  const sign = (time: string, id: string, body = BODY) => ({
    "x-timestamp": time,
    "x-event-id": id,
    "x-signature": `sha256=${createHmac("sha256", SECRET).update(`${time}.${id}.${body}`).digest("hex")}`,
  });

  it("a captured delivery cannot be sent with another id, another time, to another entity, or late", async () => {
    const genuine = sign(String(now()), "evt-1");
    expect((await send(genuine)).body).toEqual({ status: "processed" });
    expect((await send(genuine)).body).toEqual({ status: "duplicate" });
    expect((await send({ ...genuine, "x-event-id": "evt-2" })).status).toBe(401);
    expect((await send({ ...genuine, "x-timestamp": String(now() + 1) })).status).toBe(401);
    expect((await send(genuine, "timed/other")).status).toBe(400);
    expect((await send({ ...genuine, "idempotency-key": "evt-3", "webhook-id": "evt-4" })).body).toEqual({
      status: "duplicate",
    });
    expect((await send(sign(String(now() - 301), "evt-5"))).status).toBe(401);
    expect((await send(sign(String(now() + 400), "evt-6"))).status).toBe(401);
  });

  it("a delivery without time or id, with the plain signature, or with a part of the body in the id is refused", async () => {
    const { "x-timestamp": _time, ...timeless } = sign(String(now()), "evt-7");
    expect((await send(timeless)).status).toBe(401);
    const { "x-event-id": _id, ...nameless } = sign(String(now()), "evt-7");
    expect((await send(nameless)).status).toBe(401);
    expect((await send({ "x-signature": hexSignature(BODY), "x-event-id": "evt-7" })).status).toBe(401);
    const time = String(now());
    const shifted = { ...sign(time, "evt-8", `x.${BODY}`), "x-event-id": "evt-8.x" };
    expect((await send(shifted)).status).toBe(401);
  });

  it("the test route and the source list support the scheme", async () => {
    const { body } = await server.api("POST", "/accounts/default/webhooks/sources/timed/test", {
      entity: "tried",
    });
    expect(body.result.status).toBe(200);
    const { body: source } = await server.api("GET", "/accounts/default/webhooks/sources/timed");
    expect([source.result.window_seconds, source.result.scheme]).toEqual([
      300,
      expect.stringContaining("x-timestamp"),
    ]);
  });
});

describe("a payload that is nested too deeply to serialize", () => {
  it("the route that tests a source answers 400", async () => {
    const deep = `{"payload":{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`;
    const answer = await server.api("POST", "/accounts/default/webhooks/sources/generic/test", deep);
    expect([answer.status, answer.body.errors[0].code]).toEqual([400, 7002]);
    expect(JSON.stringify(server.logs)).not.toContain("RangeError");
  });

  it("the intake does not fail", async () => {
    const deep = `{"type":"t","a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
    const answer = await post(`${server.url}/webhooks/deep`, deep, { "x-signature": hexSignature(deep) });
    expect(answer.status).toBe(200);
    // A form has to be serialized again.
    const form = `payload=${encodeURIComponent(`{"repository":{"full_name":"deep/form"},"a":${deep}}`)}`;
    const refused = await post(`${server.url}/webhooks/github`, form, {
      "content-type": "application/x-www-form-urlencoded",
      "x-hub-signature-256": hexSignature(form),
    });
    expect([refused.status, refused.body.errors[0].code]).toEqual([400, 4002]);
  });
});
