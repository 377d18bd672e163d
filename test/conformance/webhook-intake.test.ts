/** Sections 4.2, 5.2 and 7.1 of the contract: routes, signatures and statuses of the webhook intake. */
import { createHmac } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import Stripe from "stripe";
import twilio from "twilio";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { instanceNames } from "../support/instance-names.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { hexSignature, post, SECRET, sendGeneric, sendGithub } from "../support/webhook-sender.ts";

const ENVIRONMENT = {
  WEBHOOK_SECRET: `${SECRET}, the-next-secret`,
  GITHUB_WEBHOOK_SECRET: SECRET,
  STRIPE_WEBHOOK_SECRET: SECRET,
  SLACK_WEBHOOK_SECRET: SECRET,
  TWILIO_WEBHOOK_SECRET: SECRET,
  LINEAR_WEBHOOK_SECRET: SECRET,
  DOORS_WEBHOOK_SECRET: SECRET,
  EXACT_WEBHOOK_SECRET: SECRET,
};

let server: TestServer;
/** Set while the clock of the server stands still. */
let stoppedAt: number | null = null;

beforeAll(async () => {
  server = await startTestServer({
    clock: { now: () => stoppedAt ?? Date.now() },
    environment: ENVIRONMENT,
    file: {
      webhooks: {
        maxBodyBytes: 64 * 1024,
        sources: {
          doors: {
            scheme: { header: "X-Doors", encoding: "base64" },
            entity: ["body:door", "header:x-door"],
          },
          exact: { scheme: "github", entityForm: "reversible" },
        },
      },
    },
  });
});

afterAll(() => server.stop());

const instances = () => instanceNames(server.dataDir);

describe("routes", () => {
  it("POST /webhooks/{entity_id} reaches the agent of that name", async () => {
    const answer = await sendGeneric(server.url, "device-1", { type: "hello" });
    expect([answer.status, answer.body]).toEqual([200, { status: "processed" }]);
    expect(await instances()).toContain("device-1");
  });

  it("POST /webhooks/{provider}/{entity_id} reaches the agent of the third segment", async () => {
    expect((await sendGithub(server.url, { path: "github/Some-Entity" })).status).toBe(200);
    expect(await instances()).toContain("some-entity");
  });

  it("POST /webhooks/{provider} finds the entity in the payload, in lower case, with / as -", async () => {
    expect((await sendGithub(server.url, { repository: "Acme/Widgets" })).status).toBe(200);
    expect(await instances()).toContain("acme-widgets");
  });

  it("POST /webhooks/{provider} finds the entity in a header if the rule says so", async () => {
    const body = JSON.stringify({ type: "opened" });
    const signature = createHmac("sha256", SECRET).update(body).digest("base64");
    const answer = await post(`${server.url}/webhooks/doors`, body, {
      "x-doors": signature,
      "x-door": "Front Door",
    });
    expect(answer.status).toBe(200);
    expect(await instances()).toContain("front-door");
  });

  it("a trailing slash is ignored, and an encoded slash is part of the entity", async () => {
    expect((await sendGithub(server.url, { repository: "acme/widgets", path: "github/" })).status).toBe(200);
    expect(
      (await sendGithub(server.url, { repository: "acme/widgets", path: "github/acme%2Fwidgets" })).status,
    ).toBe(200);
  });

  it.each(["/webhooks", "/webhooks/", "/webhooks/github/a/b", "/webhooks/nobody/entity"])(
    "POST %s is 404",
    async (path) => {
      const body = "{}";
      expect((await post(server.url + path, body, { "x-signature": hexSignature(body) })).status).toBe(404);
    },
  );

  it.each(["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])(
    "%s answers 405 with Allow: POST",
    async (method) => {
      const response = await fetch(`${server.url}/webhooks/github`, { method });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
    },
  );
});

describe("entities", () => {
  it.each([{}, { repository: null }, { repository: { full_name: "" } }, { repository: { full_name: {} } }])(
    "a payload without an entity is 400: %j",
    async (payload) => {
      const answer = await sendGithub(server.url, { payload });
      expect([answer.status, answer.body.errors[0].code]).toEqual([400, 4003]);
    },
  );

  it.each(["undefined", "null", "%20", ".%20", "..%20", "x".repeat(257)])(
    "no instance is named %s",
    async (entity) => {
      const before = await instances();
      expect((await sendGeneric(server.url, `generic/${entity}`, { type: "x" })).status).toBe(400);
      expect(await instances()).toEqual(before);
    },
  );

  it("an entity in the URL that differs from the signed payload is 400", async () => {
    const answer = await sendGithub(server.url, { repository: "acme/widgets", path: "github/acme-gadgets" });
    expect([answer.status, answer.body.errors[0].code]).toEqual([400, 4004]);
  });

  it("a/b-c and a-b/c are two instances, always the same two", async () => {
    const before = await instances();
    for (const repository of ["a/b-c", "a-b/c", "A/B-C", "a-b/c"]) {
      expect((await sendGithub(server.url, { repository })).status).toBe(200);
    }
    expect((await instances()).filter((name) => !before.includes(name)).sort()).toEqual(["a-b-c", "a-b_2fc"]);
  });

  it("a source may choose the reversible form of names", async () => {
    expect((await sendGithub(server.url, { repository: "Org/My-Repo", path: "exact" })).status).toBe(200);
    expect(await instances()).toContain("org_2fmy-repo");
  });
});

describe("signatures", () => {
  const body = JSON.stringify({ type: "hello", id: "sig-1" });
  const url = () => `${server.url}/webhooks/signed-entity`;

  it.each([
    ["missing", {}],
    ["empty", { "x-signature": "" }],
    ["of another secret", { "x-signature": hexSignature(body, "wrong") }],
    ["without its prefix", { "x-signature": hexSignature(body).slice(7) }],
    ["in upper case", { "x-signature": `sha256=${hexSignature(body).slice(7).toUpperCase()}` }],
    ["cut", { "x-signature": hexSignature(body).slice(0, -2) }],
  ])("a signature that is %s is 401, whether or not the entity exists", async (_what, headers) => {
    const before = await instances();
    const unknown = await post(url(), body, headers);
    const known = await post(`${server.url}/webhooks/device-1`, body, headers);
    expect(unknown.status).toBe(401);
    expect(unknown.body).toEqual({
      success: false,
      errors: [{ code: 4001, message: "Invalid signature" }],
      messages: [],
      result: null,
    });
    expect([known.status, known.body]).toEqual([401, unknown.body]);
    expect(await instances()).toEqual(before);
  });

  it("both generic headers and both active secrets are accepted", async () => {
    expect((await post(url(), body, { "x-hub-signature-256": hexSignature(body) })).status).toBe(200);
    expect((await post(url(), body, { "x-signature": hexSignature(body, "the-next-secret") })).status).toBe(
      200,
    );
  });

  it("a source without a secret refuses every delivery, and the log names the variable to set", async () => {
    const answer = await post(`${server.url}/webhooks/shopify`, body, { "x-shopify-hmac-sha256": "x" });
    expect([answer.status, answer.body.errors[0].message]).toEqual([401, "Invalid signature"]);
    expect(JSON.stringify(server.logs)).toContain("SHOPIFY_WEBHOOK_SECRET");
  });

  it("stripe: an old or future timestamp is 401", async () => {
    const payload = JSON.stringify({
      id: "evt_1",
      type: "invoice.paid",
      data: { object: { customer: "cus_9" } },
    });
    const send = (timestamp: number) =>
      post(`${server.url}/webhooks/stripe`, payload, {
        "stripe-signature": new Stripe("sk").webhooks.generateTestHeaderString({
          payload,
          secret: SECRET,
          timestamp,
        }),
      });
    const now = Math.floor(Date.now() / 1000);
    expect((await send(now)).status).toBe(200);
    expect((await send(now - 400)).status).toBe(401);
    expect((await send(now + 400)).status).toBe(401);
    expect(await instances()).toContain("cus_9");
  });

  it("linear: a payload that is older or newer than a minute is 401", async () => {
    const send = (webhookTimestamp: unknown) => {
      const text = JSON.stringify({ organizationId: "org-1", type: "Issue", webhookTimestamp });
      return post(`${server.url}/webhooks/linear`, text, { "linear-signature": hexSignature(text).slice(7) });
    };
    expect((await send(Date.now())).status).toBe(200);
    expect((await send(Date.now() - 61_000)).status).toBe(401);
    expect((await send(Date.now() + 61_000)).status).toBe(401);
    expect((await send(undefined)).status).toBe(401);
  });

  it("twilio: forms and JSON are verified with the URL of the request", async () => {
    const address = `${server.url}/webhooks/twilio`;
    const fields = { AccountSid: "AC77", MessageSid: "SM1", MessageStatus: "sent", Body: "héllo & more" };
    const form = new URLSearchParams(fields).toString();
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "x-twilio-signature": twilio.getExpectedTwilioSignature(SECRET, address, fields),
    };
    expect((await post(address, form, headers)).status).toBe(200);
    expect((await post(address, form.replace("sent", "read"), headers)).status).toBe(401);
    const json = JSON.stringify({ AccountSid: "AC78", Type: "com.twilio.x" });
    const hashed = `${address}?bodySHA256=${twilio.getExpectedBodyHash(json)}`;
    const signature = twilio.getExpectedTwilioSignature(SECRET, hashed, {});
    expect((await post(hashed, json, { "x-twilio-signature": signature })).status).toBe(200);
    expect(
      (await post(hashed, json.replace("AC78", "AC79"), { "x-twilio-signature": signature })).status,
    ).toBe(401);
    expect(await instances()).toEqual(expect.arrayContaining(["ac77", "ac78"]));
  });
});

describe("handshakes", () => {
  it("slack: the challenge is returned if the signature is valid", async () => {
    const body = JSON.stringify({ type: "url_verification", challenge: "3eZbrw" });
    const time = String(Math.floor(Date.now() / 1000));
    const signature = `v0=${createHmac("sha256", SECRET).update(`v0:${time}:${body}`).digest("hex")}`;
    const send = (text: string) =>
      post(`${server.url}/webhooks/slack`, text, {
        "x-slack-signature": signature,
        "x-slack-request-timestamp": time,
      });
    const answer = await send(body);
    expect([answer.status, answer.body]).toEqual([200, { challenge: "3eZbrw" }]);
    expect((await send(body.replace("3eZ", "4eZ"))).status).toBe(401);
  });

  it("github: a ping is answered and creates no instance", async () => {
    const before = await instances();
    const answer = await sendGithub(server.url, { event: "ping", payload: { zen: "Keep it simple" } });
    expect([answer.status, answer.body]).toEqual([200, { status: "pong" }]);
    expect(await instances()).toEqual(before);
  });
});

describe("payloads", () => {
  it.each(["", "{", "nonsense", '"text"', "5", "null", "\ufeff{}"])(
    "%j is 400 and creates no instance",
    async (body) => {
      const before = await instances();
      const answer = await sendGeneric(server.url, "bad-payload", body);
      expect([answer.status, answer.body.errors[0].code]).toEqual([400, 4002]);
      expect(JSON.stringify(answer.body)).not.toMatch(/\bat \w|position|\.ts/);
      expect(await instances()).toEqual(before);
    },
  );

  it("a content type other than JSON and the known forms is 415", async () => {
    const answer = await sendGeneric(server.url, "xml", "<a/>", { "content-type": "application/xml" });
    expect([answer.status, answer.body.errors[0].code]).toEqual([415, 4006]);
  });

  it("a body over the limit is 413, with or without a declared length, before any other check", async () => {
    const big = JSON.stringify({ type: "x", text: "x".repeat(70_000) });
    expect((await sendGeneric(server.url, "big", big)).status).toBe(413);
    expect(await sendChunked(big)).toBe(413);
  });

  it("a body that is too slow or never ends is cut off", async () => {
    // A server of its own: with this limit a pause of the machine would refuse other deliveries.
    const impatient = await startTestServer({
      environment: ENVIRONMENT,
      file: { webhooks: { bodyTimeoutMs: 300 } },
    });
    try {
      const socket = await openDelivery(impatient.url, 1000);
      socket.write("{");
      const answer = await readAll(socket);
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
      expect(answer).toMatch(/connection: close/i);
    } finally {
      await impatient.stop();
    }
  });

  it("an incomplete body leaves no trace", async () => {
    const before = await instances();
    const socket = await openDelivery(server.url, 1000);
    socket.write("{");
    socket.destroy();
    expect(await instances()).toEqual(before);
  });
});

describe("a sender without the secret", () => {
  it("forged deliveries create no instance, write a few rows of the list and reveal nothing", async () => {
    const before = await instances();
    // Listing the deliveries writes the pending records of earlier ones.
    const summary = async () => {
      const { body } = await server.api("GET", "/accounts/default/webhooks/deliveries/summary");
      const { rejected = 0, unlisted_rejected: unlisted = 0 } =
        body.result.sources.find(({ source }: { source: string }) => source === "github") ?? {};
      return { rejected, unlisted };
    };
    const earlier = await summary();
    const files = folderSize(server.dataDir);
    // A few each second are listed: all of these are sent at one moment, by the clock of the server.
    stoppedAt = Date.now();
    for (let i = 0; i < 300; i++) {
      const body = JSON.stringify({ repository: { full_name: `evil/repo-${i}` } });
      const answer = await post(`${server.url}/webhooks/github`, body, {
        "x-hub-signature-256": hexSignature(body, "guess"),
      });
      expect(answer.status).toBe(401);
    }
    stoppedAt = null;
    const { rejected, unlisted } = await summary();
    expect(rejected + unlisted - earlier.rejected - earlier.unlisted).toBe(300);
    // A burst.
    expect(rejected - earlier.rejected).toBeLessThanOrEqual(25);
    // The rows are in the control plane's log, which has the size of whole pages.
    expect(folderSize(server.dataDir) - files).toBeLessThan(1024 * 1024);
    expect(await instances()).toEqual(before);
  });
});

function folderSize(path: string): number {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

function sendChunked(body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${server.url}/webhooks/big`, {
      method: "POST",
      headers: {
        "transfer-encoding": "chunked",
        "content-type": "application/json",
        "x-signature": hexSignature(body),
      },
    });
    outgoing.on("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** A request whose headers are sent and whose body is left to the test. */
function openDelivery(url: string, declaredBytes: number): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `POST /webhooks/slow HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${declaredBytes}\r\n\r\n`,
        () => resolve(socket),
      );
    });
  });
}

async function readAll(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket) text += (chunk as Buffer).toString();
  return text;
}
