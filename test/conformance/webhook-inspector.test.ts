/** The inspector: received deliveries, their results and replay, through the management API and the command line. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { hexSignature, post, SECRET, sendGeneric, sendGithub } from "../support/webhook-sender.ts";

const SOURCES = "/accounts/default/webhooks/sources";
const DELIVERIES = "/accounts/default/webhooks/deliveries";

let server: TestServer;
/** Set while the clock of the server stands still. */
let stoppedAt: number | null = null;

beforeAll(async () => {
  server = await startTestServer({
    clock: { now: () => stoppedAt ?? Date.now() },
    environment: { WEBHOOK_SECRET: SECRET, GITHUB_WEBHOOK_SECRET: SECRET },
    file: { webhooks: { keepDeliveries: 20, maxBodyBytes: 64 * 1024 } },
  });
});

afterAll(() => server.stop());

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly reason: string | null;
  readonly instance: string | null;
  readonly delivery_id: string | null;
}

const list = async (query = ""): Promise<Shown[]> =>
  (await server.api("GET", `${DELIVERIES}${query}`)).body.result;

describe("sources", () => {
  it("sources are listed with their variables and without their secrets", async () => {
    const { body } = await server.api("GET", SOURCES);
    const names = (body.result as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual([
      "generic",
      "github",
      "stripe",
      "slack",
      "twilio",
      "shopify",
      "standard",
      "svix",
      "gitlab",
      "linear",
      "pagerduty",
      "discord",
      "sendgrid",
      "paypal",
      "sns",
    ]);
    expect(body.result[1]).toMatchObject({
      path: "/webhooks/github",
      secret_variable: "GITHUB_WEBHOOK_SECRET",
      secrets: 1,
      agent: "webhook-agent",
    });
    expect(JSON.stringify(body)).not.toContain(SECRET);
  });

  it("sources need webhooks.read and belong to one account", async () => {
    expect((await server.api("GET", SOURCES, undefined, await server.token(["tags.read"]))).status).toBe(403);
    expect((await server.api("GET", SOURCES, undefined, await server.token(["webhooks.read"]))).status).toBe(
      200,
    );
    await server.api("POST", "/accounts", { id: "other" });
    expect((await server.api("GET", "/accounts/other/webhooks/sources")).body.result).toEqual([]);
    expect((await server.api("GET", "/accounts/other/webhooks/sources/github")).status).toBe(404);
  });

  it("sources are filtered by tags", async () => {
    await server.api("PUT", "/accounts/default/tags", {
      resource_type: "webhook_source",
      resource_id: "github",
      tags: { team: "core" },
    });
    const { body } = await server.api("GET", `${SOURCES}?tag=team=core`);
    expect((body.result as { name: string }[]).map(({ name }) => name)).toEqual(["github"]);
  });

  it("a source can be tested with a sample that the server signs", async () => {
    const { body } = await server.api("POST", `${SOURCES}/github/test`, { entity: "acme/tried" });
    expect(body.result).toMatchObject({ status: 200, body: '{"status":"processed"}' });
    const [newest] = await list("?limit=1");
    expect(newest).toMatchObject({
      status: "accepted",
      instance: "acme-tried",
      delivery_id: body.result.delivery_id,
    });
    const unset = await server.api("POST", `${SOURCES}/stripe/test`, {});
    expect([unset.status, unset.body.errors[0].message]).toEqual([
      409,
      expect.stringContaining("STRIPE_WEBHOOK_SECRET"),
    ]);
    const token = await server.token(["webhooks.read"]);
    expect((await server.api("POST", `${SOURCES}/github/test`, {}, token)).status).toBe(403);
  });
});

describe("deliveries", () => {
  it.each(["statuss=failed", "Status=failed", "status[]=failed", "instances=x"])(
    "a misspelt filter is refused and does not list everything: %s",
    async (query) => {
      const { status } = await server.api("GET", `/accounts/default/webhooks/deliveries?${query}`);
      expect(status).toBe(400);
    },
  );

  it("deliveries are listed newest first with their results and can be filtered", async () => {
    await sendGithub(server.url, { repository: "acme/listed", delivery: "d-1" });
    await sendGithub(server.url, { repository: "acme/listed", delivery: "d-1" });
    await sendGithub(server.url, { payload: {}, delivery: "d-2" });
    await post(`${server.url}/webhooks/github`, "{}", { "x-hub-signature-256": hexSignature("{}", "wrong") });
    await post(`${server.url}/webhooks/github`, "{}", {});
    await post(`${server.url}/webhooks/stripe`, "{}", {});
    const rows = await list("?limit=6");
    expect(rows.map(({ status, reason }) => [status, reason])).toEqual([
      ["rejected", "no_secret"],
      ["rejected", "signature_missing"],
      ["rejected", "signature_mismatch"],
      ["rejected", "missing_entity"],
      ["duplicate", null],
      ["accepted", "processed"],
    ]);
    expect((await list("?status=duplicate")).map((row) => row.delivery_id)).toEqual(["d-1"]);
    expect((await list("?source=stripe")).every((row) => row.reason === "no_secret")).toBe(true);
    expect((await list("?instance=acme-listed")).length).toBe(2);
    expect((await list("?delivery_id=d-2")).length).toBe(1);
    expect((await server.api("GET", `${DELIVERIES}?status=nonsense`)).status).toBe(400);
    expect((await server.api("GET", "/accounts/other/webhooks/deliveries")).body.result).toEqual([]);
  });

  it("deliveries with an incomplete body are listed", async () => {
    const answer = await post(`${server.url}/webhooks/github`, "x".repeat(70_000), {});
    expect(answer.status).toBe(413);
    expect((await list("?limit=1"))[0]).toMatchObject({ status: "rejected", reason: "body_too_large" });
  });

  it("deliveries are paged by cursor, newest first, and followed with `after`, oldest first", async () => {
    const all = await list();
    const first = await server.api("GET", `${DELIVERIES}?limit=3`);
    const second = await server.api("GET", `${DELIVERIES}?limit=3&cursor=${first.body.result_info.cursor}`);
    expect([...first.body.result, ...second.body.result]).toEqual(all.slice(0, 6));
    const since = await list(`?after=${all[3]?.id}`);
    expect(since.map(({ id }) => id)).toEqual([all[2]?.id, all[1]?.id, all[0]?.id]);
  });

  it("deliveries are found by a part of instance, id, type or body, and counted over time", async () => {
    const names = async (search: string) =>
      (await list(`?search=${encodeURIComponent(search)}`)).map((row) => row.delivery_id);
    expect(await names("ACME-lis")).toEqual(["d-1", "d-1"]);
    expect(await names('"acme/listed"')).toEqual(["d-1", "d-1"]);
    expect(await names("d-1")).toContain("d-1");
    for (const none of ["%", "acme_listed", "\\", "no such text"]) expect(await names(none)).toEqual([]);
    const times = `since=${new Date(Date.now() - 3_600_000).toISOString()}&until=${new Date(Date.now() + 3_600_000).toISOString()}`;
    const count = async (query: string) =>
      (await server.api("GET", `${DELIVERIES}/histogram?${times}&step_seconds=3600&${query}`)).body.result;
    const steps: Record<string, number>[] = await count("instance=acme-listed");
    const sum = (status: string) => steps.reduce((all, step) => all + (step[status] ?? 0), 0);
    expect([sum("accepted"), sum("duplicate"), sum("rejected")]).toEqual([1, 1, 0]);
    expect(await count("search=no%20such%20text")).toEqual([]);
    const { status } = await server.api(
      "GET",
      `${DELIVERIES}/histogram?since=2020-01-01T00:00:00Z&until=2026-01-01T00:00:00Z&step_seconds=60`,
    );
    expect(status).toBe(400);
  });

  it("headers and body are shown for verified deliveries only", async () => {
    const [accepted] = await list("?status=accepted&instance=acme-listed");
    const { body } = await server.api("GET", `${DELIVERIES}/${accepted?.id}`);
    expect(JSON.parse(body.result.body)).toEqual({ repository: { full_name: "acme/listed" } });
    expect(body.result.headers).toMatchObject({ "x-github-event": "push" });
    expect(JSON.stringify(body.result.headers)).not.toContain("sha256=");
    const [rejected] = await list("?status=rejected");
    expect((await server.api("GET", `${DELIVERIES}/${rejected?.id}`)).body.result).toMatchObject({
      body: null,
      headers: {},
    });
    expect((await server.api("GET", `${DELIVERIES}/nothing`)).status).toBe(404);
  });

  it("a replay runs the agent again under a new id", async () => {
    const [accepted] = await list("?status=accepted&instance=acme-listed");
    const { body } = await server.api("POST", `${DELIVERIES}/${accepted?.id}/replay`, {});
    expect(body.result).toEqual({
      status: "processed",
      event_id: expect.stringMatching(/^d-1#replay-/),
      error: null,
    });
    const [rejected] = await list("?status=rejected");
    expect((await server.api("POST", `${DELIVERIES}/${rejected?.id}/replay`, {})).status).toBe(409);
    const token = await server.token(["webhooks.read"]);
    expect((await server.api("POST", `${DELIVERIES}/${accepted?.id}/replay`, {}, token)).status).toBe(403);
  });

  it("the number of stored deliveries is limited; the newest of each kind stay, and rejected ones beyond it are counted", async () => {
    for (let i = 0; i < 30; i++) await sendGeneric(server.url, "bounded", { id: `b-${i}` });
    // At once, by the clock of the server: a few each second are listed, and the oldest of those are dropped.
    stoppedAt = Date.now();
    await Promise.all(Array.from({ length: 30 }, () => post(`${server.url}/webhooks/bounded`, "{}", {})));
    stoppedAt = null;
    const accepted = await list("?status=accepted");
    expect(accepted).toHaveLength(20);
    expect(accepted[0]?.delivery_id).toBe("b-29");
    const { rejected, unlisted_rejected: unlisted } = (
      await server.api("GET", `${DELIVERIES}/summary`)
    ).body.result.sources.find(({ source }: { source: string }) => source === "generic");
    expect(rejected).toBeLessThanOrEqual(20);
    expect(rejected + unlisted).toBe(30);
  });

  it("deliveries are counted for Prometheus", async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(/signalbox_webhook_deliveries_total\{source="generic",status="accepted"\} \d+/);
  });
});

describe("the first commands shown at the start", () => {
  it("no command sends an event while there is no secret to sign with", async () => {
    const bare = await startTestServer();
    expect(bare.service.firstCommands.map(({ card }) => card)).toEqual(["gateway", "tags"]);
    await bare.stop();
  });
});

describe("the command line", () => {
  const run = (...args: string[]) => runCommand(server, args);

  it("a sample is sent, signed with a given secret or by the server", async () => {
    const signed = await run("webhooks", "send", "github", "acme/cli", "--secret", SECRET, "--id", "cli-1");
    expect(signed).toMatchObject({ code: 0, out: '200 {"status":"processed"} (delivery cli-1)\n' });
    expect(
      (await run("webhooks", "send", "github", "acme/cli", "--secret", SECRET, "--id", "cli-1")).out,
    ).toContain("duplicate");
    expect((await run("webhooks", "send", "generic", "from-server")).out).toContain("processed");
    expect((await list("?limit=1"))[0]).toMatchObject({ instance: "from-server" });
    const wrong = await run("webhooks", "send", "github", "--secret", "wrong");
    expect(wrong).toMatchObject({ code: 1, out: expect.stringContaining("401") });
  });

  it("a custom payload and custom headers are sent", async () => {
    const payload = JSON.stringify({
      action: "opened",
      issue: { number: 1, title: "Squeak" },
      repository: { full_name: "acme/own" },
    });
    const sent = await run(
      "webhooks",
      "send",
      "github",
      "--secret",
      SECRET,
      "--payload",
      payload,
      "--header",
      "x-github-event: issues",
    );
    expect(sent.code).toBe(0);
    const shown = await run("webhooks", "deliveries", "--instance", "acme-own");
    expect(shown.out).toContain("Issue #1 opened: Squeak");
  });

  it("sources and deliveries are listed, a delivery is shown and replayed, and new deliveries are followed", async () => {
    expect((await run("webhooks", "sources")).out).toMatch(
      /stripe +\/webhooks\/stripe +set STRIPE_WEBHOOK_SECRET/,
    );
    const rows = JSON.parse(
      (await run("webhooks", "deliveries", "--status", "accepted", "--limit", "1", "--json")).out,
    ) as Shown[];
    const id = rows[0]?.id ?? "";
    expect((await run("webhooks", "show", id)).out).toContain('"body"');
    expect((await run("webhooks", "replay", id)).out).toMatch(/^processed as /);
    const tail = run("webhooks", "tail", "--limit", "1", "--source", "generic");
    // The tail starts at the newest delivery it finds, so deliveries are sent until it has printed one.
    let isDone = false;
    void tail.finally(() => (isDone = true));
    for (let i = 0; !isDone; i++) {
      await sendGeneric(server.url, "tailed", { id: `tail-${i}`, type: "followed" });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect((await tail).out).toMatch(/generic {2}accepted {2}followed {2}tailed/);
  });

  it("an error is explained in one line", async () => {
    expect(await run("webhooks", "send", "gihub")).toMatchObject({
      code: 2,
      err: 'signalbox: unknown source "gihub", did you mean "github"?\n',
    });
    expect((await run("webhooks", "send", "github", "--payload", "{")).code).toBe(2);
    expect((await run("webhooks", "send", "stripe")).err).toContain("STRIPE_WEBHOOK_SECRET");
    expect((await run("webhooks", "deliveries", "--limit", "x")).code).toBe(2);
  });
});
