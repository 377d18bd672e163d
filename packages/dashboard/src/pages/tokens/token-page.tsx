import { useMemo } from "react";
import { Badge } from "../../components/badge.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Time } from "../../components/time.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths, useHasPermission } from "../../session/session.ts";
import { limitRows } from "../limits/limit-rows.ts";
import { LimitsTable } from "../limits/limits-table.tsx";
import { TokenActions } from "./token-actions.tsx";
import { TokenForm } from "./token-form.tsx";
import { TokenUsage } from "./token-usage.tsx";
import type { Token } from "./token.ts";

const REFRESH_MS = 5000;

/** One token: what is left of its limits, its settings and its usage. */
export function TokenPage({ id }: { readonly id: string }) {
  const account = useAccount();
  const { page } = useAccountPaths();
  const canReadUsage = useHasPermission("gateway.read");
  const token = useResource(`${account.id} ${id}`, (signal) => account.tokens.get(id, { signal }));
  const budgets = useResource(
    `budgets ${account.id} ${id}`,
    (signal) => account.budgets.state({ tokenId: id }, { signal }),
    { refreshMs: REFRESH_MS },
  );
  const crumbs = useMemo(() => [{ title: "Tokens", to: page("tokens") }], [page]);
  const reload = () => {
    token.reload();
    budgets.reload();
  };
  return (
    <>
      <PageHeader
        title={token.value?.name ?? "Token"}
        crumbs={crumbs}
        actions={token.value !== undefined && <TokenActions token={token.value} onChange={reload} />}
      />
      <ResourceView of={token}>
        {(value) => (
          <div className="stack">
            <section className="panel" aria-label="Details">
              <Details token={value} />
            </section>
            <section className="section" aria-labelledby="token-budgets-title">
              <h2 id="token-budgets-title">Budgets and rate limits</h2>
              <ResourceView of={budgets}>
                {(states) =>
                  states.length === 0 ? (
                    <p className="muted">This token has no budgets and no rate limits.</p>
                  ) : (
                    <LimitsTable
                      label="What is left"
                      rows={limitRows([], states, { tokenId: id })}
                      canEdit
                      onChange={reload}
                    />
                  )
                }
              </ResourceView>
            </section>
            <TokenForm key={formKey(value)} token={value} onChange={reload} />
            {canReadUsage && <TokenUsage id={id} />}
          </div>
        )}
      </ResourceView>
    </>
  );
}

/** Changes with everything that the form shows, and with nothing else: a rotation must not discard what was typed. */
function formKey({
  name,
  budgets,
  soft_budget,
  rate_limits,
  models,
  providers,
  routes,
  metadata,
  owner,
  tags,
}: Token) {
  return JSON.stringify([
    name,
    budgets,
    soft_budget,
    rate_limits,
    models,
    providers,
    routes,
    metadata,
    owner,
    tags,
  ]);
}

function Details({ token }: { readonly token: Token }) {
  const isExpired = token.expires_at !== null && Date.parse(token.expires_at) <= Date.now();
  return (
    <DetailList
      items={[
        [
          "Status",
          token.disabled ? (
            <Badge key="status" tone="bad">
              disabled
            </Badge>
          ) : isExpired ? (
            <Badge key="status" tone="bad">
              expired
            </Badge>
          ) : (
            <Badge key="status" tone="good">
              active
            </Badge>
          ),
        ],
        ["Token", <code key="token">…{token.last_four}</code>],
        ["Owner", token.owner ?? "–"],
        ["Gateway", token.gateway_id ?? "all"],
        ["Permissions", token.permissions.join(", ")],
        ["Created", <Time key="created" at={token.created_at} />],
        ["Expires", <Time key="expires" at={token.expires_at} isDue />],
        ["Last used", <Time key="used" at={token.last_used_at} />],
        ...(token.previous_expires_at === null
          ? []
          : [["Old text valid until", <Time key="grace" at={token.previous_expires_at} isDue />] as const]),
      ]}
    />
  );
}
