/** What each source reads from its provider's payloads: entity, type, delivery id and description. */
import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { configFile } from "../config/config-file.ts";
import { toInstanceName } from "./entity-names.ts";
import { parsePayload, readEvent, visibleHeaders } from "./read-event.ts";
import { createSources } from "./source.ts";
import { findFirst, SOURCE_KINDS } from "./sources/index.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const sources = createSources(configFile.parse({}).webhooks, {});

function read(name: string, payload: object | string, headers: IncomingHttpHeaders = {}) {
  const source = sources.get(name);
  if (source === undefined) throw new Error(`no source ${name}`);
  const body = Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload));
  const delivery = { headers, ...parsePayload(source.kind, headers["content-type"], body) };
  const { rawBody, payload: parsed, ...event } = readEvent(source, delivery, body, NOW);
  expect(rawBody).toBe(body);
  return {
    ...event,
    parsed,
    entity: findFirst(source.entity, delivery),
    handshake: source.kind.handshake?.(delivery, event.type) ?? null,
  };
}

const FORM = { "content-type": "application/x-www-form-urlencoded" };

describe("github", () => {
  const repository = { full_name: "Acme/Widgets", html_url: "https://github.com/Acme/Widgets" };
  const headers = (event: string) => ({ "x-github-event": event, "x-github-delivery": "72d3162e" });

  it("reads a push", () => {
    const payload = {
      ref: "refs/heads/main",
      compare: "https://github.com/Acme/Widgets/compare/a...b",
      commits: [{}, {}],
      head_commit: { message: "Fix the door\n\nIt stuck." },
      repository,
      sender: { login: "octocat" },
    };
    expect(read("github", payload, headers("push"))).toMatchObject({
      id: "72d3162e",
      source: "github",
      type: "push",
      action: null,
      entity: "Acme/Widgets",
      timestamp: "2026-01-02T03:04:05.678Z",
      title: "octocat pushed 2 commits to main",
      description: "Fix the door",
      url: "https://github.com/Acme/Widgets/compare/a...b",
      actor: "octocat",
    });
  });

  it("reads a pull request, a comment on it, a release and a workflow run", () => {
    const pull_request = {
      number: 7,
      title: "Better hinges",
      body: "They squeak.",
      html_url: "https://github.com/x/7",
    };
    const sender = { login: "octocat" };
    expect(
      read("github", { action: "opened", pull_request, repository, sender }, headers("pull_request")),
    ).toMatchObject({
      action: "opened",
      title: "Pull request #7 opened: Better hinges",
      description: "They squeak.",
      url: "https://github.com/x/7",
    });
    const comment = { body: "Looks good", html_url: "https://github.com/x/7#c" };
    const issue = { number: 7, title: "Better hinges" };
    expect(
      read("github", { action: "created", comment, issue, repository, sender }, headers("issue_comment")),
    ).toMatchObject({
      title: "Comment #7 created: Better hinges",
      description: "Looks good",
      url: "https://github.com/x/7#c",
    });
    const release = { tag_name: "v1.2.3", html_url: "https://github.com/r" };
    expect(read("github", { action: "published", release, repository }, headers("release"))).toMatchObject({
      title: "Release published: v1.2.3",
    });
    const workflow_run = { name: "CI", conclusion: "failure", html_url: "https://github.com/w" };
    expect(
      read("github", { action: "completed", workflow_run, repository }, headers("workflow_run")),
    ).toMatchObject({
      title: "Workflow run completed: CI",
      description: "failure",
    });
  });

  it("reads an event of an unknown type, an event of an organisation, and a form", () => {
    expect(read("github", { action: "created", repository }, headers("star"))).toMatchObject({
      title: "star created in Acme/Widgets",
    });
    expect(read("github", { organization: { login: "Acme" } }, headers("organization")).entity).toBe("Acme");
    const form = `payload=${encodeURIComponent(JSON.stringify({ repository }))}`;
    expect(read("github", form, { ...headers("push"), ...FORM })).toMatchObject({
      entity: "Acme/Widgets",
      parsed: { repository },
    });
  });

  it("answers the ping", () => {
    expect(read("github", { zen: "…", hook_id: 1 }, headers("ping")).handshake).toEqual({
      status: 200,
      body: '{"status":"pong"}',
    });
  });
});

describe("stripe", () => {
  const event = (object: object, rest: object = {}) => ({
    id: "evt_1",
    type: "invoice.paid",
    data: { object },
    ...rest,
  });

  it("finds the customer in every place", () => {
    expect(read("stripe", event({ customer: "cus_1" }))).toMatchObject({
      entity: "cus_1",
      id: "evt_1",
      type: "invoice.paid",
    });
    expect(read("stripe", event({ customer: { id: "cus_2" } })).entity).toBe("cus_2");
    expect(read("stripe", event({ object: "customer", id: "cus_3" })).entity).toBe("cus_3");
    expect(read("stripe", event({ object: "payout", id: "po_1" }, { account: "acct_1" })).entity).toBe(
      "acct_1",
    );
  });

  it("finds none where there is none", () => {
    expect(read("stripe", event({ object: "product", id: "prod_1" })).entity).toBeNull();
    expect(read("stripe", event({ customer: null })).entity).toBeNull();
  });

  it("shows the amount in the currency's units", () => {
    expect(read("stripe", event({ amount_paid: 4200, currency: "eur" })).title).toBe(
      "invoice.paid (42.00 EUR)",
    );
    expect(read("stripe", event({ amount: 4200, currency: "jpy" })).title).toBe("invoice.paid (4200 JPY)");
  });
});

describe("slack", () => {
  it("reads an event", () => {
    const payload = {
      type: "event_callback",
      team_id: "T1",
      event_id: "Ev1",
      event: { type: "message", channel: "C1", user: "U1", text: "hi" },
    };
    expect(read("slack", payload)).toMatchObject({
      entity: "T1",
      id: "Ev1",
      type: "message",
      title: "message in C1",
      description: "hi",
      actor: "U1",
      handshake: null,
    });
  });

  it("reads a slash command and an interaction from their forms", () => {
    expect(
      read("slack", "command=%2Fdeploy&team_id=T1&trigger_id=9&user_name=ann&text=now", FORM),
    ).toMatchObject({
      entity: "T1",
      type: "/deploy",
      description: "now",
      actor: "ann",
    });
    const payload = JSON.stringify({ type: "block_actions", team: { id: "T2" }, user: { username: "bob" } });
    expect(read("slack", `payload=${encodeURIComponent(payload)}`, FORM)).toMatchObject({
      entity: "T2",
      type: "block_actions",
    });
  });

  it("echoes the challenge, as text that cannot break out of JSON", () => {
    expect(read("slack", { type: "url_verification", challenge: 'a"b' }).handshake).toEqual({
      status: 200,
      body: '{"challenge":"a\\"b"}',
    });
  });
});

describe("the others", () => {
  it("twilio: each status of a message is a delivery of its own", () => {
    const sent = read(
      "twilio",
      "AccountSid=AC1&MessageSid=SM1&MessageStatus=sent&From=%2B1&To=%2B2&Body=hi",
      FORM,
    );
    expect(sent).toMatchObject({
      entity: "AC1",
      type: "message.sent",
      id: "SM1.sent",
      title: "message.sent from +1 to +2",
      description: "hi",
      actor: "+1",
    });
    expect(read("twilio", "AccountSid=AC1&CallSid=CA1&CallStatus=ringing", FORM)).toMatchObject({
      type: "call.ringing",
      id: "CA1.ringing",
    });
  });

  it("shopify: type, shop and id are in headers", () => {
    const headers = {
      "x-shopify-topic": "orders/create",
      "x-shopify-shop-domain": "Shop.myshopify.com",
      "x-shopify-webhook-id": "w1",
    };
    expect(
      read("shopify", { name: "#1001", total_price: "10.00", currency: "EUR", email: "a@b.c" }, headers),
    ).toMatchObject({
      entity: "Shop.myshopify.com",
      type: "orders/create",
      id: "w1",
      title: "orders/create #1001 (10.00 EUR)",
      actor: "a@b.c",
    });
  });

  it("gitlab: project, kind and number", () => {
    const payload = {
      object_kind: "merge_request",
      user: { username: "ann" },
      project: { path_with_namespace: "group/sub/app" },
      object_attributes: { iid: 3, title: "Tidy", action: "open", url: "https://gitlab.com/mr/3" },
    };
    expect(read("gitlab", payload, { "x-gitlab-event-uuid": "u1" })).toMatchObject({
      entity: "group/sub/app",
      id: "u1",
      title: "merge request #3 open: Tidy",
      url: "https://gitlab.com/mr/3",
      actor: "ann",
    });
  });

  it("linear: the id is that of the delivery, not of the webhook", () => {
    const payload = {
      type: "Issue",
      action: "update",
      organizationId: "org-1",
      webhookId: "same-for-all",
      webhookTimestamp: NOW,
      data: { identifier: "ENG-1", title: "Paint" },
      url: "https://linear.app/x",
      actor: { name: "Ann" },
    };
    expect(read("linear", payload, { "linear-delivery": "d1" })).toMatchObject({
      id: "d1",
      entity: "org-1",
      title: "Issue ENG-1 update: Paint",
      actor: "Ann",
    });
    expect(read("linear", payload).id).toMatch(/^sha256:/);
  });

  it("pagerduty: the service, and its test event", () => {
    const event = {
      id: "e1",
      event_type: "incident.triggered",
      data: { number: 5, title: "Down", service: { id: "P1" } },
    };
    expect(read("pagerduty", { event })).toMatchObject({
      entity: "P1",
      id: "e1",
      title: "incident.triggered #5: Down",
    });
    expect(read("pagerduty", { event: { event_type: "pagey.ping" } }).handshake).not.toBeNull();
  });

  it("discord: interactions, webhook events, and both kinds of probe", () => {
    const interaction = {
      id: "1",
      type: 2,
      guild_id: "G1",
      data: { name: "roll" },
      member: { user: { username: "ann" } },
    };
    expect(read("discord", interaction)).toMatchObject({
      entity: "G1",
      type: "application_command",
      title: "application_command roll",
    });
    const event = { version: 1, application_id: "A1", type: 1, event: { type: "ENTITLEMENT_CREATE" } };
    expect(read("discord", event)).toMatchObject({
      entity: "A1",
      type: "ENTITLEMENT_CREATE",
      handshake: null,
    });
    expect(read("discord", { type: 1 }).handshake).toEqual({ status: 200, body: '{"type":1}' });
    expect(read("discord", { type: 0, application_id: "A1" }).handshake).toEqual({ status: 204, body: "" });
  });

  it("generic: headers come before the body, and the id of a delivery without one is a hash", () => {
    expect(
      read(
        "generic",
        { id: "b", type: "body" },
        { "x-event-type": "head", "x-event-id": "h", "idempotency-key": "i" },
      ),
    ).toMatchObject({ id: "h", type: "head" });
    expect(read("generic", { id: "b", type: "body" }, { "idempotency-key": "i" })).toMatchObject({
      id: "i",
      type: "body",
    });
    expect(read("generic", { id: 5 })).toMatchObject({ id: "5", type: "unknown", title: "unknown" });
    const nameless = read("generic", { a: 1 });
    expect(nameless.id).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(read("generic", { a: 1 }).id).toBe(nameless.id);
    expect(read("generic", { a: 2 }).id).not.toBe(nameless.id);
  });
});

describe("an integer that a JavaScript number cannot hold", () => {
  const LARGE = "9007199254740993";

  it("keeps its digits as the id, the type or the entity, wherever its source looks", () => {
    expect(read("generic", `{"type":${LARGE},"id":-${LARGE}1,"entity":{"id":${LARGE}}}`)).toMatchObject({
      type: LARGE,
      id: `-${LARGE}1`,
      entity: LARGE,
    });
    expect(read("discord", `{"type":${LARGE},"id":1${LARGE},"guild_id":2${LARGE}}`)).toMatchObject({
      type: LARGE,
      id: `1${LARGE}`,
      entity: `2${LARGE}`,
    });
    const customer = `{"id":1,"type":"t","data":{"object":{"object":"customer","id":${LARGE}}}}`;
    expect(read("stripe", customer).entity).toBe(LARGE);
    expect(read("twilio", `{"CallSid":${LARGE},"CallStatus":"busy"}`).id).toBe(`${LARGE}.busy`);
    const form = `payload=${encodeURIComponent(`{"installation":{"id":${LARGE}}}`)}`;
    expect(read("github", form, { ...FORM, "x-github-event": "push" }).entity).toBe(LARGE);
    const digits = "7".repeat(400);
    expect(read("generic", `{"type":"t","entity_id":${digits}}`).entity).toBe(digits);
  });

  it("is found beside members of the same name", () => {
    const payload = `{"id":"1","entity":{"id":${LARGE}5,"entity":{"id":${LARGE}6}},"list":[{"id":${LARGE}7}]}`;
    expect(read("generic", payload).entity).toBe(`${LARGE}5`);
  });

  it("other numbers are read as before", () => {
    expect(read("generic", '{"id":1e3,"entity_id":1.50}')).toMatchObject({ id: "1000", entity: "1.5" });
    expect(() => read("generic", '{"id":1e400}')).toThrow(
      expect.objectContaining({ id: "webhook_invalid_payload" }),
    );
  });

  it("inside a payload that is nested too deeply to be read twice is refused", () => {
    const depth = 200_000;
    const nested = `{"a":${"[".repeat(depth)}${"]".repeat(depth)},"id":`;
    expect(read("generic", `${nested}7}`).id).toBe("7");
    expect(() => read("generic", `${nested}${LARGE}}`)).toThrow(
      expect.objectContaining({ id: "webhook_invalid_payload" }),
    );
  });
});

describe("every source", () => {
  it.each(SOURCE_KINDS.map((kind) => kind.name))("%s reads its own sample", (name) => {
    const kind = SOURCE_KINDS.find((one) => one.name === name);
    const sample = kind?.sample({ entity: "acme/widgets", deliveryId: "d1", now: NOW });
    const event = read(name, sample?.body ?? "", { ...sample?.headers, "content-type": sample?.contentType });
    // SendGrid sends lists, which are events of one entity unless the source divides them.
    const entity = name === "sendgrid" ? "sendgrid" : "acme-widgets";
    expect(toInstanceName(event.entity ?? "", "plain")).toBe(entity);
    expect(event.type).not.toBe("unknown");
    expect(event.title.length).toBeGreaterThan(0);
    if (!["standard", "svix", "sendgrid"].includes(name)) expect(event.id).toBe("d1");
  });

  it.each(SOURCE_KINDS.map((kind) => kind.name))("%s does not fail on unexpected payloads", (name) => {
    for (const payload of [
      { data: null, event: 5, repository: "x", commits: {} },
      [{ data: null, event: 5, repository: "x", commits: {} }],
    ]) {
      expect(() => read(name, payload)).not.toThrow();
    }
    for (const payload of ["{}", "[]", "[[]]", "[1]", "[{}]"]) {
      expect(() => read(name, payload)).toThrow(expect.objectContaining({ id: "webhook_invalid_payload" }));
    }
    const { entity } = read(
      name,
      '{"constructor":{"name":"x"},"__proto__":{"id":"evil","entity_id":"evil"}}',
    );
    // Some sources have an entity of their own for events without one.
    expect([null, name]).toContain(entity);
  });

  it("refuses a type or an id that is neither text nor a number, and treats an empty one as absent", () => {
    const invalid = expect.objectContaining({ id: "webhook_invalid_payload" });
    for (const value of [{}, [], { a: 1 }, ["x"], true]) {
      expect(() => read("generic", { type: value })).toThrow(invalid);
      expect(() => read("generic", { type: "t", id: value })).toThrow(invalid);
      expect(() => read("stripe", { type: "t", id: value })).toThrow(invalid);
      // A field that no rule reads may have any value.
      expect(read("generic", { type: value }, { "x-event-type": "t", "x-event-id": "1" }).type).toBe("t");
    }
    expect(read("generic", { type: 5, id: 7 })).toMatchObject({ type: "5", id: "7" });
    for (const value of [null, ""]) expect(read("generic", { type: value, id: value }).type).toBe("unknown");
    expect(read("generic", {}, { "x-event-type": "ping" }).type).toBe("ping");
  });

  it("keeps only http and https links, and cuts long texts", () => {
    expect(read("generic", { url: "javascript:alert(1)" }).url).toBeNull();
    expect(read("generic", { title: "x".repeat(1000) }).title).toHaveLength(256);
  });

  it("passes on headers except credentials and signatures", () => {
    expect(
      visibleHeaders({
        "x-github-event": "push",
        "x-hub-signature-256": "s",
        "x-shopify-hmac-sha256": "s",
        "x-gitlab-token": "t",
        authorization: "a",
        cookie: "c",
        "x-api-key": "k",
        "set-cookie": ["a", "b"],
      }),
    ).toEqual({ "x-github-event": "push", "set-cookie": "a, b" });
  });
});
