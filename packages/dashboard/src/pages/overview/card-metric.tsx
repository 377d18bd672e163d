/** A one-line summary of current data on an overview card. It loads after the card is shown. */
import type { Permission } from "@signalbox/protocol";
import { count, share } from "../../format/number.ts";
import { read, request, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import type { AgentClass } from "../agents/agent.ts";
import type { Usage } from "../gateways/analytics/usage.ts";

export type CardName = "gateway" | "agents" | "tags";

const NEEDS: Readonly<Record<CardName, Permission>> = {
  gateway: "gateway.read",
  agents: "agents.read",
  tags: "tags.read",
};
const DAY_MS = 24 * 60 * 60 * 1000;
const REFRESH_MS = 10_000;

export function CardMetric({ card }: { readonly card: CardName }) {
  const { api } = useAccountPaths();
  const isAllowed = useHasPermission(NEEDS[card]);
  const metric = useResource(isAllowed ? card : null, (signal) => readMetric(card, api, signal), {
    refreshMs: REFRESH_MS,
  });
  // No error message here: the page behind the card shows it.
  return <p className="card-metric">{metric.value ?? "\u00a0"}</p>;
}

async function readMetric(
  card: CardName,
  api: (...parts: string[]) => string,
  signal: AbortSignal,
): Promise<string> {
  switch (card) {
    case "gateway": {
      const start = new Date(Date.now() - DAY_MS).toISOString();
      const [total] = await read<Usage[]>(withQuery(api("ai-gateway", "usage"), { start }), signal);
      if (total === undefined || total.calls === 0) return "No calls in the last 24 hours";
      return `${plural(total.calls, "call")} in the last 24 hours, ${share(total.errors, total.calls)} errors`;
    }
    case "agents": {
      const agents = await read<AgentClass[]>(api("agents"), signal);
      const instances = agents.reduce((sum, agent) => sum + agent.instance_count, 0);
      return `${plural(agents.length, "agent")}, ${plural(instances, "instance")}`;
    }
    case "tags": {
      const { info } = await request(withQuery(api("tags", "resources"), { total: "exact" }), { signal });
      return plural(info.total_count ?? 0, "tagged resource");
    }
  }
}

function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}
