/**
 * Traffic during a backup: webhooks to agents, tags and gateway calls, each remembered when it was acknowledged. A restored service is compared with
 * what had been acknowledged before the backup began.
 */
import { join } from "node:path";
import { expect } from "vitest";
import { sendRequest } from "./send-request.ts";
import { waitUntil } from "./wait-until.ts";
import { sendGeneric } from "./webhook-sender.ts";

/** Accepted work of its agents waits while HOLD is set. */
export const AGENTS = join(import.meta.dirname, "../fixtures/waking-agents.ts");
export const GATEWAY = "/accounts/default/ai-gateway/gateways/default";
/** What a call costs. */
export const DOLLARS_PER_CALL = 7;

export const configOf = (providerUrl: string) => ({
  agents: { modules: [AGENTS] },
  webhooks: { sources: { held: { scheme: "generic" as const, agent: "held-agent" } } },
  providers: { openai: { baseUrl: providerUrl } },
  gateway: { prices: { openai: { m: { in: 1_000_000, out: 1_000_000 } } } },
});

export const BUDGET = {
  spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 1_000_000, window: null }] },
};

export interface Acknowledged {
  readonly entities: readonly string[];
  readonly tagged: readonly string[];
  readonly calls: number;
}

export interface Traffic {
  /** What was acknowledged so far. */
  soFar(): Acknowledged;
  stop(): Promise<void>;
}

/** Sends to all addresses in turn, until it is stopped. `token` is one of the gateway. */
export function startTraffic(urls: readonly string[], token: string, webhookSecret: string): Traffic {
  const entities: string[] = [];
  const tagged: string[] = [];
  let calls = 0;
  let count = 0;
  let isStopped = false;
  const repeat = async (send: (url: string, i: number) => Promise<void>) => {
    while (!isStopped) {
      const i = count++;
      // The server is killed in the end.
      await send(urls[i % urls.length] ?? "", i).catch(() => undefined);
    }
  };
  const all = Promise.all([
    repeat(async (url, i) => {
      const { status } = await sendGeneric(url, `held/e${i}`, { i }, {}, webhookSecret);
      if (status === 202 || status === 200) entities.push(`e${i}`);
    }),
    repeat(async (url, i) => {
      const tags = { i: String(i) };
      const body = { resource_type: "worker", resource_id: `w${i}`, tags };
      const { status } = await sendRequest({ url }, "PUT", "/accounts/default/tags", body);
      if (status === 200) tagged.push(`w${i}`);
    }),
    repeat(async (url) => {
      if ((await callGateway(url, token)) === 200) calls += 1;
    }),
  ]);
  return {
    soFar: () => ({ entities: [...entities], tagged: [...tagged], calls }),
    async stop() {
      isStopped = true;
      await all;
    },
  };
}

export async function callGateway(url: string, token: string): Promise<number> {
  const response = await fetch(`${url}/v1/default/default/openai/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "m", max_tokens: 6 }),
    headers: { "content-type": "application/json", "cf-aig-authorization": `Bearer ${token}` },
  });
  await response.text();
  return response.status;
}

/** Everything acknowledged is there, once, and work that was accepted is done without a request to its instance. */
export async function expectRestored(url: string, before: Acknowledged): Promise<void> {
  const instance = async (name: string) =>
    (await sendRequest({ url }, "GET", `/accounts/default/agents/held-agent/instances/${name}`)).body.result;
  for (const name of before.entities) {
    const { state } = await waitUntil(
      () => instance(name),
      (found) => found?.state?.worked === 1 && found.state.rang === 1,
      20,
    );
    expect(state).toEqual({ events: 1, worked: 1, rang: 1 });
  }
  for (const id of before.tagged) {
    const query = `resource_type=worker&resource_id=${id}`;
    const { body } = await sendRequest({ url }, "GET", `/accounts/default/tags?${query}`);
    expect(body.result.tags).toEqual({ i: id.slice(1) });
  }
  const { body: logs } = await sendRequest({ url }, "GET", `${GATEWAY}/logs?per_page=1`);
  expect(logs.result_info.total_count).toBeGreaterThanOrEqual(before.calls);
  const { body: budgets } = await sendRequest({ url }, "GET", `${GATEWAY}/budgets`);
  expect(budgets.result.budgets[0].used).toBeGreaterThanOrEqual(before.calls * DOLLARS_PER_CALL);
}
