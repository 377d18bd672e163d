import type { ListedWebhookRoute } from "@signalbox/client";
import { useState } from "react";
import { Badge } from "../../../components/badge.tsx";
import { Button } from "../../../components/button.tsx";
import { ConfirmDialog } from "../../../components/confirm-dialog.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Time } from "../../../components/time.tsx";
import { withQuery } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccount, useAccountPaths, useHasPermission } from "../../../session/session.ts";
import { ReplayEventsDialog } from "./replay-events-dialog.tsx";
import { RouteDialog } from "./route-dialog.tsx";
import { filterText, targetText } from "./route-words.ts";
import { SourceIssues } from "./source-issues.tsx";

const REFRESH_MS = 2000;

/** The routes of a source as deliveries flow through them: source, filter, target, with live numbers of events. */
export function SourceRoutes({ source, agent }: { readonly source: string; readonly agent: string }) {
  const { api, page } = useAccountPaths();
  const routes = useList<ListedWebhookRoute>(api("webhooks", "sources", source, "routes"), {
    refreshMs: REFRESH_MS,
  });
  const canEdit = useHasPermission("webhooks.edit");
  const [edited, setEdited] = useState<ListedWebhookRoute | "new" | null>(null);
  const [isReplaying, setReplaying] = useState(false);
  const hasRoutes = (routes.value?.length ?? 0) > 0;
  return (
    <section className="section" aria-labelledby="routes-title">
      <div className="flow-header">
        <h2 id="routes-title">Routes</h2>
        <div className="page-actions">
          {hasRoutes && (
            <Link className="button button-plain" to={withQuery(page("webhooks", "events"), { source })}>
              Events
            </Link>
          )}
          {canEdit && hasRoutes && <Button onClick={() => setReplaying(true)}>Replay events…</Button>}
          {canEdit && <Button onClick={() => setEdited("new")}>Add route</Button>}
        </div>
      </div>
      <ResourceView of={routes}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="muted">
              No routes: deliveries go to the agent <code>{agent}</code>. With routes, one delivery goes to
              several agents and addresses.
            </p>
          ) : (
            <ul className="flow" aria-label={`Routes of ${source}`}>
              {rows.map((route) => (
                <RouteFlow
                  key={route.name}
                  route={route}
                  canEdit={canEdit}
                  onEdit={() => setEdited(route)}
                  onChanged={routes.reload}
                />
              ))}
            </ul>
          )
        }
      </ResourceView>
      <SourceIssues source={source} canEdit={canEdit} />
      {edited !== null && (
        <RouteDialog
          source={source}
          route={edited === "new" ? null : edited}
          onSaved={routes.reload}
          onClose={() => setEdited(null)}
        />
      )}
      {isReplaying && (
        <ReplayEventsDialog source={source} routes={routes.value ?? []} onClose={() => setReplaying(false)} />
      )}
    </section>
  );
}

interface RouteFlowProps {
  readonly route: ListedWebhookRoute;
  readonly canEdit: boolean;
  readonly onEdit: () => void;
  readonly onChanged: () => void;
}

function RouteFlow({ route, canEdit, onEdit, onChanged }: RouteFlowProps) {
  const account = useAccount();
  const [isDeleting, setDeleting] = useState(false);
  const { source, name, events, recent_attempts: recent } = route;
  const change = useAction(async () => {
    const { routing } = account.webhooks;
    await (route.paused ? routing.resumeRoute(source, name) : routing.pauseRoute(source, name));
    onChanged();
  });
  return (
    <li className="flow-route">
      <div className="flow-line">
        <span className="flow-step">{source}</span>
        <span className="flow-arrow" aria-hidden="true" />
        <span className="flow-step">
          {filterText(route)}
          {events.ignored > 0 && <Count route={route} state="ignored" count={events.ignored} />}
        </span>
        <span className="flow-arrow" aria-hidden="true" />
        <span className="flow-step flow-target">
          <strong>{name}</strong> <span className="flow-address">{targetText(route.to)}</span>
        </span>
      </div>
      <div className="flow-figures">
        {route.paused && <Badge tone="warn">paused{because(route)}</Badge>}
        {route.listener !== null && <Badge tone="warn">taken by {route.listener}</Badge>}
        <Count
          route={route}
          state={route.paused ? "held" : "queued"}
          title="waiting"
          count={events.waiting}
        />
        <Count route={route} state="delivered" count={events.delivered} />
        <Count route={route} state="failed" count={events.failed} />
        {route.oldest_waiting_at !== null && (
          <span className="muted small">
            oldest <Time at={route.oldest_waiting_at} />
          </span>
        )}
        {recent !== null && (
          <span className="muted small">
            last hour: {recent.count} attempts, {recent.failed} failed, median {recent.p50_ms} ms, p95{" "}
            {recent.p95_ms} ms
          </span>
        )}
        {canEdit && (
          <span className="flow-actions">
            <Button size="small" onClick={onEdit}>
              {route.defined_in === "file" ? "Show" : "Edit"}
            </Button>
            <Button size="small" isBusy={change.isBusy} onClick={() => void change.run()}>
              {route.paused ? "Resume" : "Pause"}
            </Button>
            {route.defined_in === "api" && (
              <Button size="small" kind="quiet" onClick={() => setDeleting(true)}>
                Delete
              </Button>
            )}
          </span>
        )}
      </div>
      {change.error !== null && <ErrorNotice error={change.error} />}
      {isDeleting && (
        <ConfirmDialog
          title={`Delete the route ${name}`}
          verb="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await account.webhooks.routing.deleteRoute(source, name);
            onChanged();
          }}
        >
          <p>
            Its {events.waiting} events that wait are cancelled. Events that have ended are kept for their
            time.
          </p>
        </ConfirmDialog>
      )}
    </li>
  );
}

function because({ paused_because: reason }: ListedWebhookRoute): string {
  if (reason === "gone") return ": the receiver answered 410";
  return reason === "failing" ? ": the receiver only failed for five days" : "";
}

interface CountProps {
  readonly route: ListedWebhookRoute;
  readonly state: string;
  readonly title?: string;
  readonly count: number;
}

function Count({ route, state, title = state, count }: CountProps) {
  const { page } = useAccountPaths();
  const tone = state === "failed" && count > 0 ? "bad" : "neutral";
  const to = withQuery(page("webhooks", "events"), { source: route.source, route: route.name, state });
  return (
    <Link to={to} className="flow-count">
      <Badge tone={tone}>
        {count} {title}
      </Badge>
    </Link>
  );
}
