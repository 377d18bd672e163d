/** Agents and their instances: of `ticket-agent`, which the examples load. */
import { refused, step } from "./step.ts";

/** After deliveries to the instances `acme-shop`, and `acme-billing`, whose work fails. */
export const AGENTS = [
  step(({ account }) => account.agents.list().all()),
  step(({ account }) => account.agents.instances("ticket-agent", { order: "last_active" }).all()),
  step(({ account }) => account.agents.problems({ problem: "dead_letters" })),
  step(({ account }) => account.agents.instance("ticket-agent", "acme-shop").get()),
  step(
    ({ account }) => account.agents.instance("ticket-agent", "acme-shop").queue().all(),
    ([item]: readonly { id: string }[]) => ({ itemId: item?.id ?? "" }),
  ),
  step(({ client, itemId }) =>
    client.request("GET", `/accounts/default/agents/ticket-agent/instances/acme-shop/queue/${itemId}`),
  ),
  step(({ account, itemId }) => account.agents.instance("ticket-agent", "acme-shop").removeQueueItem(itemId)),
  step(
    ({ account }) => account.agents.instance("ticket-agent", "acme-shop").schedules().all(),
    ([schedule]: readonly { id: string }[]) => ({ scheduleId: schedule?.id ?? "" }),
  ),
  step(({ client, scheduleId }) =>
    client.request(
      "GET",
      `/accounts/default/agents/ticket-agent/instances/acme-shop/schedules/${scheduleId}`,
    ),
  ),
  step(({ account, scheduleId }) =>
    account.agents.instance("ticket-agent", "acme-shop").runSchedule(scheduleId),
  ),
  step(({ account, scheduleId }) =>
    account.agents.instance("ticket-agent", "acme-shop").removeSchedule(scheduleId),
  ),
  step(({ account }) => account.agents.instance("ticket-agent", "acme-shop").connections().all()),
  step(({ account }) => account.agents.instance("ticket-agent", "acme-shop").events().all()),
  step(
    ({ account }) => account.agents.instance("ticket-agent", "acme-shop").timeline({ limit: 20 }).page(),
    ({ items: [turn] }: { items: readonly { id: string }[] }) => ({ turnId: turn?.id ?? "" }),
  ),
  step(({ account, turnId }) => account.agents.instance("ticket-agent", "acme-shop").turn(turnId)),
  step(({ account }) =>
    account.agents.instance("ticket-agent", "acme-shop").sql("SELECT name FROM sqlite_schema LIMIT 5"),
  ),
  step(({ account }) => account.agents.instance("ticket-agent", "acme-shop").moveTargets()),
  refused(400, "the server is no node of a cluster", ({ account }) =>
    account.agents.instance("ticket-agent", "acme-shop").move("node-b"),
  ),
  step(
    ({ account }) => account.agents.instance("ticket-agent", "acme-billing").deadLetters().all(),
    ([letter]: readonly { id: string }[]) => ({ deadLetterId: letter?.id ?? "" }),
  ),
  step(({ client, deadLetterId }) =>
    client.request(
      "GET",
      `/accounts/default/agents/ticket-agent/instances/acme-billing/dead-letters/${deadLetterId}`,
    ),
  ),
  step(({ account, deadLetterId }) =>
    account.agents.instance("ticket-agent", "acme-billing").discardDeadLetter(deadLetterId),
  ),
  step(({ account }) => account.agents.instance("ticket-agent", "acme-billing").replayDeadLetters()),
  step(({ account }) => account.agents.replayDeadLetters("ticket-agent", { limit: 100 })),
  step(({ account }) => account.agents.instance("ticket-agent", "acme-billing").discardDeadLetters()),
];

/** After another delivery, whose work waits. */
export const QUEUED = [
  step(({ account, itemId }) => account.agents.instance("ticket-agent", "acme-later").runQueueItem(itemId)),
  step(({ account }) => account.agents.instance("ticket-agent", "acme-later").destroy()),
];
