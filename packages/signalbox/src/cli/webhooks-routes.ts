/** `signalbox webhooks …`: routes of sources, their events, bulk replays and examples. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type {
  EventReplayQuery,
  RouteFilters,
  RouteSettings,
  RouteTarget,
  RoutedEventState,
  WebhookIssue,
} from "@signalbox/client";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

const OPTIONS: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];
const MAX_PAGE = 100;
const STATES: readonly RoutedEventState[] = [
  "scheduled",
  "queued",
  "held",
  "delivered",
  "failed",
  "cancelled",
  "ignored",
];

const ISSUE_STATES: readonly WebhookIssue["state"][] = ["open", "acknowledged", "resolved"];

const FILTERS: readonly CommandOption[] = [
  { name: "source", value: "NAME", summary: "only this source" },
  { name: "route", value: "NAME", summary: "only this route" },
  { name: "issue", value: "ID", summary: "only events of this issue" },
  { name: "type", value: "TYPE", summary: "only this event type" },
  { name: "entity", value: "ENTITY", summary: "only events of this entity" },
  { name: "text", value: "TEXT", summary: "only events whose body contains this text" },
  { name: "since", value: "TIME", summary: "only events from this time on, e.g. 2026-01-31T12:00:00Z" },
  { name: "until", value: "TIME", summary: "only events before this time" },
];

export const webhookRouteCommands: readonly Command[] = [
  {
    words: ["webhooks", "routes"],
    positionals: ["<source>"],
    summary: "List the routes of a source: where they lead, and how many events wait or have failed.",
    options: OPTIONS,
    async run(context) {
      const routes = await (await api(context)).routes(context.positionals[0] ?? "").all();
      context.print(routes, (rows) =>
        table(
          ["name", "to", "state", "waiting", "delivered", "failed", "ignored"],
          rows.map((route) => [
            route.name,
            showTarget(route.to),
            route.paused ? `paused (${route.paused_because ?? "operator"})` : "running",
            String(route.events.waiting),
            String(route.events.delivered),
            String(route.events.failed),
            String(route.events.ignored),
          ]),
          "no routes",
        ),
      );
    },
  },
  {
    words: ["webhooks", "put-route"],
    positionals: ["<source>", "<name>", "<file>"],
    summary: "Create or replace a route by a JSON file with its settings.",
    options: OPTIONS,
    async run(context) {
      const [source = "", name = "", file = ""] = context.positionals;
      const settings = readJson(context, file) as RouteSettings;
      context.print(
        await (await api(context)).putRoute(source, name, settings),
        (route) => `saved ${route.name}: ${showTarget(route.to)}${route.paused ? ", paused" : ""}\n`,
      );
    },
  },
  {
    words: ["webhooks", "delete-route"],
    positionals: ["<source>", "<name>"],
    summary: "Delete a route; its events that wait are cancelled.",
    options: OPTIONS,
    async run(context) {
      const [source = "", name = ""] = context.positionals;
      context.print(
        await (await api(context)).deleteRoute(source, name),
        (route) => `deleted ${route.name}\n`,
      );
    },
  },
  {
    words: ["webhooks", "pause"],
    positionals: ["<source>", "<route>"],
    summary: "Pause a route; its events are kept.",
    options: OPTIONS,
    async run(context) {
      const [source = "", name = ""] = context.positionals;
      context.print(await (await api(context)).pauseRoute(source, name), (route) => `paused ${route.name}\n`);
    },
  },
  {
    words: ["webhooks", "resume"],
    positionals: ["<source>", "<route>"],
    summary: "Resume a route; its events are delivered at its rate.",
    options: OPTIONS,
    async run(context) {
      const [source = "", name = ""] = context.positionals;
      context.print(
        await (await api(context)).resumeRoute(source, name),
        (route) => `resumed ${route.name}\n`,
      );
    },
  },
  {
    words: ["webhooks", "try"],
    positionals: ["<source>", "<delivery>", "[file]"],
    summary:
      "Say why a stored delivery matches the routes of its source, or the filters (body, headers, query, path) of a JSON file.",
    options: OPTIONS,
    async run(context) {
      const [source = "", delivery = "", file] = context.positionals;
      const when = file === undefined ? undefined : (readJson(context, file) as RouteFilters);
      const found = await (await api(context)).tryFilters(source, { delivery, when });
      context.print(found, (rows) =>
        rows.map(({ route, because }) => `${route === null ? "" : `${route}: `}${because}\n`).join(""),
      );
    },
  },
  {
    words: ["webhooks", "events"],
    summary: "List events of routes, newest first.",
    options: [
      ...FILTERS,
      { name: "state", value: "STATE", summary: `only this state: ${STATES.join(", ")}`, values: STATES },
      { name: "delivery", value: "ID", summary: "only events of this delivery" },
      { name: "limit", value: "COUNT", summary: `number of events (1 to ${MAX_PAGE}, default 50)` },
      ...OPTIONS,
    ],
    async run(context) {
      const limit = Number(context.option("limit") ?? 50);
      if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
        throw new UsageError(`--limit: expected a number from 1 to ${MAX_PAGE}`);
      const page = await (
        await api(context)
      )
        .events({
          ...filtersOf(context),
          // The service validates the state.
          state: context.option("state") as RoutedEventState | undefined,
          delivery: context.option("delivery"),
          limit,
        })
        .page();
      context.print(page.items, (rows) =>
        table(
          ["id", "time", "source", "route", "state", "type", "attempts", "next attempt", "reason"],
          rows.map((row) => [
            row.id,
            row.received_at,
            row.source,
            row.route,
            row.state,
            row.type,
            String(row.attempts),
            row.next_attempt_at ?? "",
            row.reason ?? "",
          ]),
          "no events",
        ),
      );
    },
  },
  {
    words: ["webhooks", "issues"],
    summary: "List issues: failed events of routes by cause; those that occurred last come first.",
    options: [
      { name: "source", value: "NAME", summary: "only this source" },
      { name: "route", value: "NAME", summary: "only this route" },
      {
        name: "state",
        value: "STATE",
        summary: `only this state: ${ISSUE_STATES.join(", ")}`,
        values: ISSUE_STATES,
      },
      ...OPTIONS,
    ],
    async run(context) {
      const { items } = await (
        await api(context)
      )
        .issues({
          source: context.option("source"),
          route: context.option("route"),
          // The service validates the state.
          state: context.option("state") as WebhookIssue["state"] | undefined,
        })
        .page();
      context.print(items, (rows) =>
        table(
          ["id", "source", "route", "state", "events", "first", "last", "sample", "cause"],
          rows.map((row) => [
            row.id,
            row.source,
            row.route,
            row.state,
            String(row.count),
            row.first_at,
            row.last_at,
            row.sample,
            row.cause,
          ]),
          "no issues",
        ),
      );
    },
  },
  {
    words: ["webhooks", "acknowledge"],
    positionals: ["<issue>"],
    summary: "Acknowledge an issue: somebody works on it.",
    options: OPTIONS,
    async run(context) {
      const issue = await (await api(context)).acknowledgeIssue(context.positionals[0] ?? "");
      context.print(issue, ({ id, state }) => `${state} ${id}\n`);
    },
  },
  {
    words: ["webhooks", "resolve"],
    positionals: ["<issue>"],
    summary: "Resolve an issue; another event that fails for its cause opens it again.",
    options: OPTIONS,
    async run(context) {
      const issue = await (await api(context)).resolveIssue(context.positionals[0] ?? "");
      context.print(issue, ({ id, state }) => `${state} ${id}\n`);
    },
  },
  {
    words: ["webhooks", "event"],
    positionals: ["<id>"],
    summary: "Show an event with what arrived and its attempts.",
    options: OPTIONS,
    async run(context) {
      const event = await (await api(context)).event(context.positionals[0] ?? "");
      context.print(event, (shown) => `${JSON.stringify(shown, null, 2)}\n`);
    },
  },
  {
    words: ["webhooks", "cancel"],
    positionals: ["<event>"],
    summary: "Cancel an event that waits.",
    options: OPTIONS,
    async run(context) {
      const event = await (await api(context)).cancelEvent(context.positionals[0] ?? "");
      context.print(event, ({ id }) => `cancelled ${id}\n`);
    },
  },
  {
    words: ["webhooks", "replay-events"],
    positionals: ["[event]"],
    summary: "Replay one event, or all that match, at the rate of their routes; --dry-run only counts.",
    options: [
      ...FILTERS,
      {
        name: "state",
        value: "STATE",
        summary: "state of the events: failed (default), ignored, cancelled or delivered",
        values: ["failed", "ignored", "cancelled", "delivered"],
      },
      { name: "dry-run", summary: "say how many, from when to when, and of which routes" },
      ...OPTIONS,
    ],
    async run(context) {
      const routing = await api(context);
      const [id] = context.positionals;
      if (id !== undefined) {
        context.print(await routing.replayEvent(id), (event) => `${event.state} ${event.id}\n`);
        return;
      }
      const query: EventReplayQuery = {
        ...filtersOf(context),
        state: context.option("state") as EventReplayQuery["state"],
      };
      if (context.hasSwitch("dry-run")) {
        context.print(await routing.planReplay(query), ({ count, oldest, newest, routes }) =>
          [
            `${count} events${oldest === null ? "" : `, from ${oldest} to ${newest ?? ""}`}`,
            ...routes.map((route) => `${route.source} ${route.route}: ${route.count}`),
            "",
          ].join("\n"),
        );
        return;
      }
      context.print(
        await routing.startReplay(query),
        (replay) => `replay ${replay.id}: ${replay.total} events\n`,
      );
    },
  },
  {
    words: ["webhooks", "replays"],
    positionals: ["[id]"],
    summary: "List bulk replays, or show the progress and the results of one.",
    options: OPTIONS,
    async run(context) {
      const routing = await api(context);
      const [id] = context.positionals;
      if (id !== undefined) {
        context.print(
          await routing.replay(id),
          ({ state, total, queued, skipped, results }) =>
            `${state}: ${queued} of ${total} queued, ${skipped} skipped; ${results.delivered} delivered, ${results.failed} failed, ${results.cancelled} cancelled, ${results.waiting} waiting\n`,
        );
        return;
      }
      const { items } = await routing.replays().page();
      context.print(items, (rows) =>
        table(
          ["id", "created", "state", "total", "queued", "skipped", "query"],
          rows.map((row) => [
            row.id,
            row.created_at,
            row.state,
            String(row.total),
            String(row.queued),
            String(row.skipped),
            JSON.stringify(row.query),
          ]),
          "no replays",
        ),
      );
    },
  },
  {
    words: ["webhooks", "cancel-replay"],
    positionals: ["<id>"],
    summary: "Cancel a bulk replay and its events that wait.",
    options: OPTIONS,
    async run(context) {
      const replay = await (await api(context)).cancelReplay(context.positionals[0] ?? "");
      context.print(replay, ({ id, state }) => `${state} ${id}\n`);
    },
  },
  {
    words: ["webhooks", "examples"],
    summary: "List deliveries that have a name.",
    options: OPTIONS,
    async run(context) {
      const examples = await (await api(context)).examples().all();
      context.print(examples, (rows) =>
        table(
          ["name", "source", "type", "entity", "bytes", "created"],
          rows.map((row) => [
            row.name,
            row.source,
            row.type,
            row.entity ?? "",
            String(row.body_bytes),
            row.created_at,
          ]),
          "no examples",
        ),
      );
    },
  },
  {
    words: ["webhooks", "name"],
    positionals: ["<delivery>", "<name>"],
    summary: "Give a stored delivery a name, so that it can be fired again.",
    options: OPTIONS,
    async run(context) {
      const [delivery = "", name = ""] = context.positionals;
      const example = await (await api(context)).putExample(name, delivery);
      context.print(example, (saved) => `saved ${saved.name}\n`);
    },
  },
  {
    words: ["webhooks", "trigger"],
    positionals: ["<name>"],
    summary: "Process a copy of a delivery that has a name, as if it had just arrived.",
    options: OPTIONS,
    async run(context) {
      const fired = await (await api(context)).fireExample(context.positionals[0] ?? "");
      context.print(fired, ({ status, body, delivery }) => `${status} ${body} ${delivery ?? ""}\n`);
      return fired.status < 300 ? 0 : 1;
    },
  },
];

async function api(context: CommandContext) {
  return (await context.account()).webhooks.routing;
}

function filtersOf(context: CommandContext) {
  return Object.fromEntries(FILTERS.map(({ name }) => [name, context.option(name)]));
}

function readJson(context: CommandContext, file: string): unknown {
  const path = resolve(context.workingFolder, file);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    throw new UsageError(`cannot read ${path}`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${path} is not JSON`);
  }
}

function showTarget(to: RouteTarget): string {
  if ("agent" in to) return `agent ${to.agent}`;
  if ("listen" in to) return "listener";
  return "object" in to ? `object ${to.object}` : to.url;
}
