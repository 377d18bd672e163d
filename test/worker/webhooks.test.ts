/** Webhooks and email reach objects: by the worker's own paths, and through the server's intake. Agents of this package live beside them. */
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

const SECRET = "a secret of the sender";
const mail = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const MAIL_KEY = mail.publicKey.export({ format: "der", type: "spki" }).toString("base64");
const authorization = `Bearer ${ROOT_TOKEN}`;
const NATIVE = join(import.meta.dirname, "../fixtures/gated-agent.ts");

/** One server leaves `/webhooks` to the worker, the other routes deliveries of github to the same class. */
let own: WorkerServer;
let routed: WorkerServer;
beforeAll(async () => {
  const env = { GITHUB_WEBHOOK_SECRET: SECRET, SENDGRID_WEBHOOK_SECRET: MAIL_KEY };
  [own, routed] = await Promise.all([
    startWorker("webhooks/src/server.ts", {
      env,
      file: { agents: { worker: { entry: "-", webhooks: true } } },
    }),
    startWorker("webhooks/src/server.ts", {
      env,
      file: {
        agents: { modules: [NATIVE] },
        // The sender is answered 200 also if the machine pauses.
        webhooks: {
          answerWithinMs: 60_000,
          sources: {
            github: { object: "RepoAgent" },
            foreign: { scheme: "generic", account: "other" },
            sendgrid: {
              routes: [
                {
                  name: "mail",
                  to: { object: "MailObject" },
                  retry: { strategy: "linear", intervalMs: 1000, count: 3 },
                },
              ],
            },
          },
        },
      },
    }),
  ]);
});
afterAll(async () => {
  await Promise.all([own.remove(), routed.remove()]);
});

const BODY = JSON.stringify({ repository: { full_name: "Acme/Widgets" }, action: "opened" });

async function deliver(url: string, secret = SECRET, id = "d1"): Promise<{ status: number; text: string }> {
  const signature = createHmac("sha256", secret).update(BODY).digest("hex");
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-hub-signature-256": `sha256=${signature}`,
      "x-github-event": "issues",
      "x-github-delivery": id,
    },
    body: BODY,
  });
  return { status: response.status, text: await response.text() };
}
const eventsOf = async (server: WorkerServer, name: string) =>
  (await fetch(`${server.url}/events/${name}`)).json();

test("the worker's own hook path works, and the agent verifies the signature", async () => {
  const url = `${own.url}/webhooks/github/Acme/Widgets`;
  expect(await deliver(url)).toEqual({ status: 200, text: '{"stored":1}' });
  expect(await deliver(url, "wrong")).toEqual({ status: 401, text: "bad signature" });
  expect(await eventsOf(own, "acme-widgets")).toEqual(["issues Acme/Widgets"]);
});

test("the server's intake delivers to an object, with the signature that it verified", async () => {
  expect(await deliver(`${routed.url}/webhooks/github`)).toEqual({ status: 200, text: '{"stored":1}' });
  expect((await deliver(`${routed.url}/webhooks/github`, "wrong")).status).toBe(401);
  expect(await eventsOf(routed, "acme-widgets")).toEqual(["issues Acme/Widgets"]);
  const listed = await fetch(`${routed.url}/accounts/default/webhooks/deliveries`, {
    headers: { authorization },
  });
  expect(JSON.stringify(await listed.json())).toContain("object:RepoAgent");
});

/** Of the server with routes. */
async function api<T>(method: string, path: string, body?: object, account = "default") {
  const response = await fetch(`${routed.url}/accounts/${account}/webhooks${path}`, {
    method,
    headers: { authorization, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as { result: T; errors: { message: string }[] };
  return { status: response.status, result: answer.result, message: answer.errors[0]?.message };
}

test("a route to an object hands on the sender's bytes and signature, also when it is repeated from what is stored", async () => {
  const body = '[{ "email":"ü@example.com", "event":"delivered", "sg_event_id":"1" }]';
  const time = String(Math.floor(Date.now() / 1000));
  const answer = await fetch(`${routed.url}/webhooks/sendgrid`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-twilio-email-event-webhook-signature": sign(
        "sha256",
        Buffer.from(time + body),
        mail.privateKey,
      ).toString("base64"),
      "x-twilio-email-event-webhook-timestamp": time,
    },
    body,
  });
  expect(answer.status).toBe(202);
  type Shown = { id: string; state: string; attempts: number; reason: string | null };
  const events = async () =>
    (await api<Shown[]>("GET", "/events?source=sendgrid")).result.map(({ state, attempts, reason }) => ({
      state,
      attempts,
      reason,
    }));
  await expect.poll(events).toEqual([{ state: "delivered", attempts: 2, reason: null }]);
});

test("a route to a class that the worker does not export is refused when it is saved, and so is one of another account", async () => {
  const path = "/sources/github/routes/objects";
  const to = (object: string) => api("PUT", path, { to: { object } });
  for (const name of ["RepoAgnet", "repoagent", "constructor", "signalbox:crons", "default"])
    expect(await to(name)).toMatchObject({
      status: 400,
      message: `to.object: expected a class that the worker exports, found "${name}"`,
    });
  expect((await to("RepoAgent")).status).toBe(200);
  expect((await api("DELETE", path)).status).toBe(200);
  // The worker belongs to the default account.
  const accounts = await fetch(`${routed.url}/accounts`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: '{"id":"other"}',
  });
  expect(accounts.status).toBe(200);
  const foreign = ["PUT", "/sources/foreign/routes/objects"] as const;
  expect(await api(...foreign, { to: { object: "RepoAgent" } }, "other")).toMatchObject({ status: 400 });
  expect(await api(...foreign, { to: { agent: "webhook-agent" } }, "other")).toMatchObject({ status: 200 });
});

test("kill -9 in the middle of deliveries: what was answered is stored, and repeats are stored once", async () => {
  // A second try finds nothing of the first.
  const repository = `killed-${crypto.randomUUID()}`;
  const url = `${own.url}/webhooks/github/Acme/${repository}`;
  const quick = Array.from({ length: 40 }, (_, i) => `killed-${i}`);
  const ids = [...quick, "held"];
  const stored = async () => (await eventsOf(own, `acme-${repository}`)) as unknown[];
  const answered: string[] = [];
  const killed = Promise.withResolvers<void>();
  /** A sender repeats a delivery until it is answered, as those of the real providers do. */
  const send = async (id: string): Promise<void> => {
    for (;;) {
      const outcome = await deliver(url, SECRET, id).catch(() => null);
      if (outcome?.status === 200) break;
      await killed.promise;
    }
    answered.push(id);
  };
  // Stored before the others are sent: a repeat of one that was not would be held again.
  const held = send("held");
  await expect.poll(stored).toHaveLength(1);
  const senders = Array.from({ length: 4 }, async (_, sender) => {
    for (const id of quick.filter((_id, i) => i % 4 === sender)) await send(id);
  });
  await expect.poll(() => answered.length, { interval: 1 }).toBeGreaterThan(5);
  const before = [...answered];
  own = await own.killAndRestart();
  expect((await stored()).length).toBeGreaterThanOrEqual(before.length);
  killed.resolve();
  await Promise.all([held, ...senders]);
  expect(await stored()).toHaveLength(ids.length);
  expect(JSON.parse((await deliver(url, SECRET, "killed-0")).text)).toEqual({
    stored: ids.length,
    repeated: true,
  });
});

test("email reaches the agent that its address names", async () => {
  const response = await fetch(`${own.url}/cdn-cgi/handler/email?from=a@example.com&to=inbox@example.com`, {
    method: "POST",
    headers: { authorization },
    body: "Subject: x\r\n\r\nhello",
  });
  expect(response.status).toBe(200);
  expect(await eventsOf(own, "inbox")).toEqual(["email a@example.com 19"]);
});

test("agents of this package answer beside the worker's, and require a token", async () => {
  const path = `${routed.url}/agents/webhook-agent/x/rpc/getEvents`;
  expect((await fetch(path, { method: "POST", body: "[]" })).status).toBe(401);
  expect((await fetch(path, { method: "POST", body: "[]", headers: { authorization } })).status).toBe(200);
  expect((await fetch(`${routed.url}/agents/repo-agent/x`)).status).toBe(401);
});
