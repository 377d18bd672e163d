import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count, moneyOf, share } from "../../format/number.ts";
import { read, request, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths, useHasPermission, useScope } from "../../session/session.ts";
import type { Usage } from "./analytics/usage.ts";
import { CreateGatewayDialog } from "./create-gateway-dialog.tsx";
import type { Gateway } from "./gateway.ts";

const NO_USAGE = { calls: 0, errors: 0, cost: 0 };

export function GatewaysPage() {
  const { api, page } = useAccountPaths();
  // A token of one gateway creates no other.
  const { session } = useScope();
  const canEdit = useHasPermission("gateway.edit") && session.gateway_id === null;
  const [search, setSearch] = useQueryValue("search");
  // In the URL, so that the palette and a link can open the dialog.
  const [creating, setCreating] = useQueryValue("create");
  const path = withQuery(api("ai-gateway", "gateways"), { search, per_page: 100 });
  const gateways = useResource(path, async (signal) => (await request<Gateway[]>(path, { signal })).result);
  const usagePath = withQuery(api("ai-gateway", "usage"), { group_by: "gateway" });
  const usage = useResource(usagePath, (signal) => read<Usage[]>(usagePath, signal));
  // The table does not wait for the usage request; its cells show a dash until then.
  const usageCell = (id: string, format: (row: Pick<Usage, "calls" | "errors" | "cost">) => string) =>
    usage.value === undefined
      ? "–"
      : format(usage.value.find(({ gateway_id }) => gateway_id === id) ?? NO_USAGE);
  const costText = moneyOf(usage.value?.map(({ cost }) => cost) ?? []);
  return (
    <>
      <PageHeader
        title="Gateways"
        actions={
          canEdit && (
            <Button kind="primary" onClick={() => setCreating("1")}>
              Create gateway
            </Button>
          )
        }
      >
        A gateway is an endpoint for calls to AI providers, with its own authentication, rate limit, cache and
        logs.
      </PageHeader>
      <div className="filters">
        <Field label="Search">
          <input
            type="search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            placeholder="Gateway name"
          />
        </Field>
      </div>
      <ResourceView of={gateways}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={search === "" ? "No gateways yet" : "No matching gateways"}>
              <p>
                {search === ""
                  ? "Create a gateway for each application or team. Each gateway has its own logs, limits and tokens."
                  : "No gateway name contains this text. Change or clear the search."}
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Gateways"
              rows={rows}
              keyOf={(gateway) => gateway.id}
              columns={[
                {
                  title: "Gateway",
                  cell: (gateway) => (
                    <Link to={page("gateways", gateway.id)} className="long-id" title={gateway.id}>
                      {gateway.id}
                    </Link>
                  ),
                },
                { title: "Authentication", cell: (gateway) => <AuthenticationBadge gateway={gateway} /> },
                {
                  title: "Calls (7 days)",
                  align: "end",
                  cell: ({ id }) => usageCell(id, ({ calls }) => count(calls)),
                },
                {
                  title: "Errors",
                  align: "end",
                  cell: ({ id }) => usageCell(id, ({ errors, calls }) => share(errors, calls)),
                },
                {
                  title: "Cost",
                  align: "end",
                  isMinor: true,
                  cell: ({ id }) => usageCell(id, ({ cost }) => costText(cost)),
                },
                {
                  title: "Last updated",
                  isMinor: true,
                  cell: (gateway) => <Time at={gateway.modified_at} />,
                },
              ]}
            />
          )
        }
      </ResourceView>
      {canEdit && creating !== "" && <CreateGatewayDialog onClose={() => setCreating("")} />}
    </>
  );
}

export function AuthenticationBadge({ gateway }: { readonly gateway: Gateway }) {
  return gateway.authentication ? (
    <Badge tone="good">Authenticated</Badge>
  ) : (
    <Badge tone="warn">Unauthenticated</Badge>
  );
}
