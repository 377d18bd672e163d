import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { request } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { Link } from "../../routing/link.tsx";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import { CreateTokenDialog } from "./create-token-dialog.tsx";
import { TokenLimits } from "./token-limits.tsx";
import type { Token } from "./token.ts";

export function TokensPage() {
  const { api, page } = useAccountPaths();
  const tokens = useList<Token>(api("tokens"));
  const [revoked, setRevoked] = useState<Token | null>(null);
  // In the URL, so that the palette and a link can open the dialog.
  const [creating, setCreating] = useQueryValue("create");
  const revoke = async (token: Token) => {
    await request(api("tokens", token.id), { method: "DELETE" });
    tokens.reload();
  };
  return (
    <>
      <PageHeader
        title="Tokens"
        actions={
          <Button kind="primary" onClick={() => setCreating("1")}>
            Create token
          </Button>
        }
      >
        Tokens authenticate programs and people. A token is shown once, when it is created.
      </PageHeader>
      <ResourceView of={tokens}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No tokens yet">
              <p>
                Create a token for each program, with only the permissions it needs, so that you can revoke it
                separately. The root token is not listed here; use it for administration only.
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Tokens"
              rows={rows}
              keyOf={(token) => token.id}
              columns={[
                {
                  title: "Name",
                  cell: (token) => (
                    <>
                      <Link to={page("tokens", token.id)}>{token.name}</Link>{" "}
                      <code className="muted">…{token.last_four}</code>{" "}
                      {token.disabled && <Badge tone="bad">disabled</Badge>}
                      {token.owner !== null && <div className="muted small">{token.owner}</div>}
                    </>
                  ),
                },
                {
                  title: "Permissions",
                  cell: (token) => (
                    <span className="badges">
                      {token.permissions.map((permission) => (
                        <Badge key={permission}>{permission}</Badge>
                      ))}
                      {token.gateway_id !== null && <Badge tone="accent">gateway: {token.gateway_id}</Badge>}
                    </span>
                  ),
                },
                { title: "Budgets", cell: (token) => <TokenLimits token={token} /> },
                { title: "Created", isMinor: true, cell: (token) => <Time at={token.created_at} /> },
                { title: "Expires", cell: (token) => <Expiry at={token.expires_at} /> },
                { title: "Last used", cell: (token) => <Time at={token.last_used_at} /> },
                {
                  title: "Actions",
                  isAction: true,
                  cell: (token) => (
                    <Button size="small" onClick={() => setRevoked(token)}>
                      Revoke<span className="visually-hidden"> {token.name}</span>
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </ResourceView>
      {tokens.hasMore && <Button onClick={tokens.loadMore}>Show more</Button>}
      {creating !== "" && <CreateTokenDialog onClose={() => setCreating("")} onCreated={tokens.reload} />}
      {revoked !== null && (
        <ConfirmDialog
          title={`Revoke “${revoked.name}”?`}
          verb="Revoke"
          onConfirm={() => revoke(revoked)}
          onClose={() => setRevoked(null)}
        >
          <p>Requests with this token are rejected immediately. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function Expiry({ at }: { readonly at: string | null }) {
  const isExpired = at !== null && Date.parse(at) <= Date.now();
  return isExpired ? (
    <Badge tone="bad">
      expired <Time at={at} />
    </Badge>
  ) : (
    <Time at={at} isDue />
  );
}
