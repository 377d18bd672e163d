/** Which of the first steps the service has seen, and whether the account is so new that they are of use. */
import type { AgentClass, DeliverySummary } from "@signalbox/client";
import { useState } from "react";
import { read, request, withQuery } from "../../http/api.ts";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import type { Access } from "./use-access.ts";

const REFRESH_MS = 10_000;
const YEAR_MS = 365 * 24 * 3_600_000;
/** An account with more calls or deliveries is in use: the steps would be in the way. */
const MAX_FIRST = 10;

export interface FirstStepsState {
  readonly isNew: boolean;
  readonly done: {
    readonly gateway: boolean;
    readonly webhooks: boolean;
    readonly agents: boolean;
    readonly tags: boolean;
  };
}

/** Once the account is in use, it is not read again. */
export function useFirstSteps(access: Access): Resource<FirstStepsState> {
  const { api } = useAccountPaths();
  const account = useAccount();
  const [isInUse, setInUse] = useState(false);
  const steps = useResource<FirstStepsState>(
    `first steps ${account.id}`,
    async (signal) => {
      const start = new Date(Date.now() - YEAR_MS).toISOString();
      const usagePath = withQuery(api("ai-gateway", "usage"), { start, gateway_id: access.gatewayId });
      const [usage, deliveries, agents, tagged] = await Promise.all([
        access.usage ? read<Usage[]>(usagePath, signal) : [],
        access.webhooks ? account.webhooks.summary({}, { signal }) : null,
        access.agents ? read<AgentClass[]>(api("agents"), signal) : [],
        access.tags ? request(withQuery(api("tags", "resources"), { total: "exact" }), { signal }) : null,
      ]);
      const calls = usage[0]?.calls ?? 0;
      const received = receivedOf(deliveries);
      const instances = agents.reduce((sum, agent) => sum + agent.instance_count, 0);
      return {
        isNew: calls < MAX_FIRST && received < MAX_FIRST && instances < MAX_FIRST,
        done: {
          gateway: calls > 0,
          webhooks: received > 0,
          agents: instances > 0,
          tags: (tagged?.info.total_count ?? 0) > 0,
        },
      };
    },
    isInUse ? {} : { refreshMs: REFRESH_MS },
  );
  // The sums of a year and of all tags: too much to read for ever.
  if (steps.value?.isNew === false && !isInUse) setInUse(true);
  return steps;
}

function receivedOf(summary: DeliverySummary | null): number {
  return summary === null ? 0 : summary.totals.accepted + summary.totals.duplicate + summary.totals.failed;
}
