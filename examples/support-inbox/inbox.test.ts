/** How to test an agent: the real service in this process, and a clock that the test moves. `npm test` runs it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { startAgents } from "signalbox/testing";
import { Inbox } from "./agents.ts";

const CONFIG = join(import.meta.dirname, "signalbox.config.ts");
const TICKET = { mailbox: "acme", ticket_id: "T-1", from: "ada", subject: "Help", text: "It is broken." };

test("a ticket is answered by the model, and pages see it", async () => {
  await using agents = await startAgents({ config: CONFIG });
  const inbox = agents.get(Inbox, "acme");
  const page = await inbox.connect();

  const { status } = await agents.webhook("tickets", { payload: TICKET });
  assert.equal(status, 200);
  await agents.idle();

  const [ticket] = (await inbox.state()).tickets;
  assert.equal(ticket?.status, "drafted");
  assert.match(ticket.draft ?? "", /It is broken/);
  assert.deepEqual(
    page.states.map(({ tickets }) => tickets[0]?.status),
    [undefined, "new", "drafted"],
  );
  assert.equal((await inbox.call("send", "T-1")).status, "sent");
});

test("a repeated delivery is one ticket, also after a crash", async () => {
  await using agents = await startAgents({ config: CONFIG });
  const inbox = agents.get(Inbox, "acme");
  await agents.webhook("tickets", { payload: TICKET, id: "delivery-1" });
  await agents.idle();
  await agents.crash();
  await agents.webhook("tickets", { payload: TICKET, id: "delivery-1" });
  await agents.idle();
  assert.equal((await inbox.sql("SELECT id FROM ticket")).length, 1);
});

test("a model that fails is asked again, and the ticket is not lost", async () => {
  await using agents = await startAgents({
    config: CONFIG,
    environment: { MODEL: "nobody/knows-this-model" },
    failures: "collect",
  });
  const inbox = agents.get(Inbox, "acme");
  await agents.webhook("tickets", { payload: TICKET });
  await agents.idle();
  assert.equal((await inbox.queue())[0]?.attempts, 1);

  await agents.advance(60_000);
  assert.equal(agents.takeFailures().length, 4);
  const [letter] = await inbox.deadLetters();
  assert.match(letter?.error ?? "", /the model answered/);
  assert.equal((await inbox.state()).tickets[0]?.status, "new");
});

test("a signature with another secret is refused", async () => {
  await using agents = await startAgents({ config: CONFIG });
  assert.equal((await agents.webhook("tickets", { payload: TICKET, secret: "wrong" })).status, 401);
});
