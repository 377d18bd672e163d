import type { WebhookIssue } from "@signalbox/client";
import { Badge } from "../../../components/badge.tsx";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { withQuery } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccount, useAccountPaths } from "../../../session/session.ts";

const REFRESH_MS = 5000;

/** Failures of the source's routes by cause, unless they are resolved. Nothing if there are none. */
export function SourceIssues({ source, canEdit }: { readonly source: string; readonly canEdit: boolean }) {
  const { api, page } = useAccountPaths();
  const account = useAccount();
  const issues = useList<WebhookIssue>(withQuery(api("webhooks", "issues"), { source }), {
    refreshMs: REFRESH_MS,
  });
  const act = useAction(async (issue: WebhookIssue, what: "acknowledge" | "resolve" | "replay") => {
    const { routing } = account.webhooks;
    if (what === "acknowledge") await routing.acknowledgeIssue(issue.id);
    else if (what === "resolve") await routing.resolveIssue(issue.id);
    else await routing.startReplay({ issue: issue.id });
    issues.reload();
  });
  const unresolved = issues.value?.filter(({ state }) => state !== "resolved") ?? [];
  if (unresolved.length === 0) return null;
  return (
    <>
      <h3>Issues</h3>
      {act.error !== null && <ErrorNotice error={act.error} />}
      <Table
        label={`Issues of ${source}`}
        rows={unresolved}
        keyOf={({ id }) => id}
        columns={[
          {
            title: "Cause",
            cell: ({ id, cause }) => (
              <Link to={withQuery(page("webhooks", "events"), { issue: id })}>{cause}</Link>
            ),
          },
          { title: "Route", cell: ({ route }) => route },
          { title: "Events", align: "end", cell: ({ count }) => count },
          { title: "First", isMinor: true, cell: ({ first_at: at }) => <Time at={at} /> },
          { title: "Last", cell: ({ last_at: at }) => <Time at={at} /> },
          {
            title: "State",
            cell: ({ state }) => <Badge tone={state === "open" ? "bad" : "warn"}>{state}</Badge>,
          },
          {
            title: "Actions",
            isAction: true,
            cell: (issue) =>
              canEdit && (
                <span className="flow-actions">
                  {issue.state === "open" && (
                    <Button size="small" onClick={() => void act.run(issue, "acknowledge")}>
                      Acknowledge
                    </Button>
                  )}
                  <Button size="small" onClick={() => void act.run(issue, "replay")}>
                    Replay all
                  </Button>
                  <Button size="small" kind="quiet" onClick={() => void act.run(issue, "resolve")}>
                    Resolve
                  </Button>
                </span>
              ),
          },
        ]}
      />
    </>
  );
}
