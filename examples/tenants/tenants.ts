/** What a SaaS keeps per customer: a gateway of its own, a key with a budget, and tags by which cost is added up. */
import type { SignalboxClient } from "@signalbox/client";

export interface Tenant {
  readonly id: string;
  readonly plan: "free" | "team";
  /** US dollars a day. */
  readonly dailyBudget: number;
}

export interface TenantKey {
  readonly tenant: Tenant;
  /** Address for the tenant's SDK. */
  readonly baseUrl: string;
  /** Shown once: give it to the tenant, or store it encrypted. */
  readonly token: string;
}

/** The tenant's gateway. Its calls, cache and limits are apart from those of the others. */
const gatewayOf = (tenant: Tenant) => `tenant-${tenant.id}`;

/** Safe to repeat for a gateway that exists; the key is a new one each time. */
export async function addTenant(client: SignalboxClient, tenant: Tenant): Promise<TenantKey> {
  const account = client.account();
  const gateway = gatewayOf(tenant);
  const known = await account.gateways.list({ search: gateway }).all();
  if (!known.some(({ id }) => id === gateway))
    await account.gateways.create({ id: gateway, authentication: true, cache_ttl: null });
  await account.tags.set({
    resource_type: "ai_gateway",
    resource_id: gateway,
    tags: { tenant: tenant.id, plan: tenant.plan },
  });
  const { token } = await account.gateways.createToken(gateway, {
    name: `${tenant.id}, daily budget`,
    owner: tenant.id,
    // The budget is exact: a call that might exceed it is refused before it is sent.
    budgets: [{ limit: tenant.dailyBudget, window: "day" }],
    rate_limits: [{ type: "requests", limit: 60, interval: 60 }],
    metadata: { tenant: tenant.id },
  });
  return { tenant, baseUrl: `${client.url}/v1/default/${gateway}/echo`, token };
}

/** One call with the tenant's key; resolves to the status of the answer. */
export async function ask({ baseUrl, token }: TenantKey, user: string, text: string): Promise<number> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      // Who in the tenant asks: cost can be grouped by it, too.
      "gw-aig-metadata": JSON.stringify({ user }),
    },
    body: JSON.stringify({ model: "echo", max_tokens: 100, messages: [{ role: "user", content: text }] }),
  });
  await response.text();
  return response.status;
}

export interface Bill {
  readonly of: string;
  readonly calls: number;
  readonly cost: number;
}

/** Cost by the value of a tag: `tenant` for bills, `plan` for what a plan costs you. */
export async function bills(client: SignalboxClient, tag: "tenant" | "plan"): Promise<Bill[]> {
  const rows = await client.account().usage({ group_by: [`tag:${tag}`] });
  return rows
    .filter((row) => row.tag != null)
    .map(({ tag: of, calls, cost }) => ({ of: of ?? "", calls, cost }))
    .sort((a, b) => b.cost - a.cost || a.of.localeCompare(b.of));
}
