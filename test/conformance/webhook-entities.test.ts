/** Sections 1.2, 4.2 and 4.3 of the contract: the entity of a delivery and the required fields. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { instanceNames } from "../support/instance-names.ts";
import { eventIds } from "../support/send-request.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { hexSignature, post, SECRET, sendGeneric, sendGithub } from "../support/webhook-sender.ts";

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    environment: {
      WEBHOOK_SECRET: SECRET,
      GITHUB_WEBHOOK_SECRET: SECRET,
      STANDARD_WEBHOOK_SECRET: SECRET,
      RULED_WEBHOOK_SECRET: SECRET,
      FOLDING_WEBHOOK_SECRET: SECRET,
    },
    file: {
      webhooks: {
        sources: {
          folding: { scheme: "generic", entity: "body:room", entitySpelling: "folded" },
          ruled: { scheme: "generic", entity: ["body:data.id", "fixed:everybody"] },
        },
      },
    },
  });
});

afterAll(() => server.stop());

const instances = () => instanceNames(server.dataDir);

function sendStandard(path: string, payload: object) {
  const body = JSON.stringify(payload);
  const id = crypto.randomUUID();
  const time = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", SECRET).update(`${id}.${time}.${body}`).digest("base64");
  return post(`${server.url}/webhooks/${path}`, body, {
    "webhook-id": id,
    "webhook-timestamp": time,
    "webhook-signature": `v1,${signature}`,
  });
}

describe("different entities", () => {
  it("a repository and an organisation with similar names have separate instances", async () => {
    await sendGithub(server.url, { repository: "acme/widgets", delivery: "of-the-repository" });
    await sendGithub(server.url, {
      payload: { organization: { login: "acme-widgets" } },
      event: "organization",
      delivery: "of-the-organisation",
    });
    expect(await eventIds(server, "acme-widgets")).toEqual(["of-the-repository"]);
    expect(await eventIds(server, "~acme-widgets")).toEqual(["of-the-organisation"]);
  });

  it.each([
    ["a%2Fb", "a-b"],
    ["a%20x", "a-x"],
    ["c%2F%C3%A9", "c-%C3%A9"],
    ["rev-w", "rev%2Fw"],
    ["g%2Fh", "g%20h"],
  ])("%s and %s in the URL have separate instances", async (first, second) => {
    const before = await instances();
    for (const entity of [first, second, first]) {
      expect((await sendGeneric(server.url, entity, { type: "t", id: entity })).status).toBe(200);
    }
    const added = (await instances()).filter((name) => !before.includes(name));
    expect(added).toHaveLength(2);
    for (const name of added) expect(await eventIds(server, name)).toHaveLength(1);
  });

  it("d_2fx, d-x and d/x are three instances", async () => {
    const before = await instances();
    for (const entity_id of ["d_2fx", "d-x", "d/x"]) {
      expect((await sendGeneric(server.url, "generic", { type: "t", entity_id })).status).toBe(200);
    }
    expect((await instances()).filter((name) => !before.includes(name)).sort()).toEqual([
      "d-x",
      "d_2fx",
      "~d_2fx",
    ]);
  });

  it("ids of a signed body that look alike have separate instances", async () => {
    const texts = ["Zed", "zed", " zed", "z\u00e9d", "ze\u0301d", "\u212aarl", "karl"];
    const before = await instances();
    for (const _ of [1, 2]) {
      for (const entity_id of texts) {
        const answer = await sendGeneric(server.url, "generic", { type: "t", id: entity_id, entity_id });
        expect(answer.status).toBe(200);
      }
    }
    const added = (await instances()).filter((name) => !before.includes(name));
    const ids = await Promise.all(added.map((name) => eventIds(server, name)));
    expect(ids.flat().sort()).toEqual(texts.toSorted());
    expect(added).toHaveLength(texts.length);
  });

  it("an id in a signed body and the same id in the URL are one entity", async () => {
    await sendGeneric(server.url, "generic", { type: "t", id: "1", entity_id: "Device-A" });
    await sendGeneric(server.url, "Device-A", { type: "t", id: "2" });
    await sendGeneric(server.url, "device-a", { type: "t", id: "3", entity_id: "Device-A" });
    expect(await eventIds(server, "device-a")).toEqual(["3", "2", "1"]);
  });

  it("repositories in any spelling are one entity, and a source can be configured so", async () => {
    for (const repository of ["Case/Repo", "case/repo"]) await sendGithub(server.url, { repository });
    expect(await eventIds(server, "case-repo")).toHaveLength(2);
    for (const id of ["Room", "ROOM"]) await sendGeneric(server.url, "folding", { type: "t", id, room: id });
    expect(await eventIds(server, "room")).toEqual(["ROOM", "Room"]);
  });

  it("entity names in the URL are case-insensitive", async () => {
    await sendGeneric(server.url, "Case-Folded", { type: "t", id: "upper" });
    await sendGeneric(server.url, "case-folded", { type: "t", id: "lower" });
    expect(await eventIds(server, "case-folded")).toEqual(["lower", "upper"]);
  });
});

describe("identifiers of 64 bits", () => {
  const send = (path: string, body: string) => sendGeneric(server.url, path, body);

  it("two events whose numeric ids differ in the last digit are two events", async () => {
    for (const [id, status] of [
      ["9007199254740992", "processed"],
      ["9007199254740993", "processed"],
      ["9007199254740993", "duplicate"],
    ]) {
      expect((await send("wide-ids", `{"type":"t","id":${id}}`)).body).toEqual({ status });
    }
    expect(await eventIds(server, "wide-ids")).toEqual(["9007199254740993", "9007199254740992"]);
  });

  it("two entities whose numbers differ in the last digit have separate instances", async () => {
    for (const entity of ["9007199254740994", "9007199254740995"]) {
      expect((await send("generic", `{"type":"t","id":"of-${entity}","entity_id":${entity}}`)).status).toBe(
        200,
      );
      expect(await eventIds(server, entity)).toEqual([`of-${entity}`]);
    }
    const answer = await send("9007199254740996", '{"type":"t","entity_id":9007199254740997}');
    expect([answer.status, answer.body.errors[0].code]).toEqual([400, 4004]);
  });
});

describe("an entity in the URL", () => {
  it.each([
    ["plainent", { entity_id: "other" }],
    ["plainent", { entity: { id: "other" } }],
    ["generic/plainent", { entity_id: "other" }],
    ["ruled/plainent", { data: { id: "other" } }],
  ])("the entity in the URL must match the signed body of /webhooks/%s", async (path, payload) => {
    const before = await instances();
    const answer = await sendGeneric(server.url, path, { type: "t", ...payload });
    expect([answer.status, answer.body.errors[0].code]).toEqual([400, 4004]);
    expect(await instances()).toEqual(before);
  });

  it("the URL may contain any form of the entity's name", async () => {
    for (const path of ["Own%2FName", "own-name", "own_2fname", "~own_2fname", "generic/own-name"]) {
      expect((await sendGeneric(server.url, path, { type: "t", entity_id: "own/name" })).status).toBe(200);
    }
    const answer = await sendGeneric(server.url, "own%20name", { type: "t", entity_id: "own/name" });
    expect(answer.status).toBe(400);
  });

  it("an X-Entity-Id beside the URL is ignored, and names the entity where the URL does not", async () => {
    const header = { "x-entity-id": "of-the-proxy" };
    for (const path of ["of-the-url", "generic/of-the-url"]) {
      expect((await sendGeneric(server.url, path, { type: "t", id: path }, header)).status).toBe(200);
    }
    expect(await eventIds(server, "of-the-url")).toHaveLength(2);
    expect(await instances()).not.toContain("of-the-proxy");
    expect((await sendGeneric(server.url, "generic", { type: "t" }, header)).status).toBe(200);
    expect(await instances()).toContain("of-the-proxy");
  });

  it("the URL wins over an entity that the source only derives from heuristics", async () => {
    expect((await sendStandard("standard/invoices", { type: "paid", data: { id: "in_1" } })).status).toBe(
      200,
    );
    expect(
      (await sendStandard("standard/invoices", { type: "paid", data: { customer_id: "c" } })).status,
    ).toBe(200);
    expect(await eventIds(server, "invoices")).toHaveLength(2);
    expect(await instances()).not.toContain("in_1");
    const named = await sendStandard("standard/invoices", { type: "paid", data: { entity_id: "other" } });
    expect([named.status, named.body.errors[0].code]).toEqual([400, 4004]);
    // Without an entity in the URL the derived one is used.
    expect((await sendStandard("standard", { type: "paid", data: { id: "in_1" } })).status).toBe(200);
    expect(await instances()).toContain("in_1");
    // A fixed entity for events without one does not contradict the URL.
    expect((await sendGeneric(server.url, "ruled/somebody", { type: "t" })).status).toBe(200);
    expect((await sendGeneric(server.url, "ruled", { type: "t" })).status).toBe(200);
    expect(await instances()).toEqual(expect.arrayContaining(["somebody", "everybody"]));
  });
});

describe("a signed body that is not an event", () => {
  it.each([
    ["{}"],
    ["[]"],
    ["[{}]"],
    ["[5]"],
    ['[[{"type":"t"}]]'],
    ['{"type":5,"id":{}}'],
    ['{"type":{"name":"t"}}'],
    ['{"type":true}'],
  ])("400, and no instance is created: %s", async (body) => {
    const before = await instances();
    const answer = await sendGeneric(server.url, "no-event", body);
    expect([answer.status, answer.body.errors[0].code]).toEqual([400, 4002]);
    expect(await instances()).toEqual(before);
  });

  it.each([
    ['{"hello":"world"}'],
    ['{"type":5,"id":7}'],
    ['[{"type":"a"},{"type":"b"}]'],
    ['{"type":null,"a":1}'],
  ])("accepted, because it has content: %s", async (body) => {
    expect((await sendGeneric(server.url, "an-event", body)).status).toBe(200);
  });
});

describe("invalid addresses", () => {
  it.each(["/webhooks", "/webhooks/", "/webhooks/github/a/b", "/webhooks//x"])(
    "%s is not an address, with any method",
    async (path) => {
      for (const method of ["GET", "PUT", "POST"]) {
        const response = await fetch(server.url + path, {
          method,
          ...(method === "GET" ? {} : { body: "{}" }),
        });
        expect([method, response.status, response.headers.get("allow")]).toEqual([method, 404, null]);
      }
    },
  );

  it("source names are case-insensitive, so a capital letter selects no other scheme", async () => {
    const body = JSON.stringify({ repository: { full_name: "case/source" } });
    const byGithub = { "x-hub-signature-256": hexSignature(body), "x-github-event": "push" };
    for (const path of ["GitHub", "GITHUB", "GitHub/case-source", "GITHUB/Case%2FSource"]) {
      expect((await post(`${server.url}/webhooks/${path}`, body, byGithub)).status).toBe(200);
    }
    // The generic header is not GitHub's.
    const answer = await post(`${server.url}/webhooks/GitHub`, body, { "x-signature": hexSignature(body) });
    expect(answer.status).toBe(401);
    const { body: listed } = await server.api(
      "GET",
      "/accounts/default/webhooks/deliveries?instance=case-source",
    );
    expect(new Set(listed.result.map(({ source }: { source: string }) => source))).toEqual(
      new Set(["github"]),
    );
  });
});
