import type { EventAttempt, RoutedEventDetail } from "@signalbox/client";
import { Badge } from "../../../components/badge.tsx";
import { Button } from "../../../components/button.tsx";
import { CodeBlock } from "../../../components/code-block.tsx";
import { DetailList } from "../../../components/detail-list.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Time } from "../../../components/time.tsx";
import { prettyJson } from "../../../format/json.ts";
import { read } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccount, useAccountPaths, useHasPermission } from "../../../session/session.ts";
import { EVENT_TONES } from "./route-words.ts";

const REFRESH_MS = 2000;

/** One event: what arrived, and each attempt with its request and its response side by side. */
export function EventPage({ id }: { readonly id: string }) {
  const { api, page } = useAccountPaths();
  const { routing } = useAccount().webhooks;
  const canEdit = useHasPermission("webhooks.edit");
  const path = api("webhooks", "events", id);
  const event = useResource(path, (signal) => read<RoutedEventDetail>(path, signal), {
    refreshMs: REFRESH_MS,
  });
  const { value } = event;
  const isWaiting = value !== undefined && ["scheduled", "queued", "held"].includes(value.state);
  const act = useAction(async () => {
    await (isWaiting ? routing.cancelEvent(id) : routing.replayEvent(id));
    event.reload();
  });
  return (
    <>
      <PageHeader
        title={value?.type ?? "Event"}
        crumbs={[
          { title: "Webhooks", to: page("webhooks") },
          { title: "Events", to: page("webhooks", "events") },
        ]}
        actions={
          value !== undefined && (
            <>
              <Badge tone={EVENT_TONES[value.state]}>{value.state}</Badge>
              {canEdit && (
                <Button isBusy={act.isBusy} onClick={() => void act.run()}>
                  {isWaiting ? "Cancel" : "Replay"}
                </Button>
              )}
            </>
          )
        }
      >
        <code className="nowrap">{id}</code>
      </PageHeader>
      {act.error !== null && <ErrorNotice error={act.error} />}
      <ResourceView of={event}>{(loaded) => <EventView event={loaded} />}</ResourceView>
    </>
  );
}

function EventView({ event }: { readonly event: RoutedEventDetail }) {
  const { page } = useAccountPaths();
  const { payload, attempt_list: attempts } = event;
  return (
    <>
      <DetailList
        items={[
          [
            "Source",
            <Link key="s" to={page("webhooks", "sources", event.source)}>
              {event.source}
            </Link>,
          ],
          ["Route", event.route],
          ["Entity", event.entity ?? "–"],
          ["Received", <Time key="t" at={event.received_at} />],
          ["Next attempt", <Time key="n" at={event.next_attempt_at} fallback="–" isDue />],
          ["Reason", event.reason ?? "–"],
        ]}
      />
      <section className="section" aria-labelledby="attempts-title">
        <h2 id="attempts-title">Attempts</h2>
        {attempts.length === 0 && <p className="muted">None yet.</p>}
        {attempts.toReversed().map((attempt) => (
          <Attempt key={attempt.id} attempt={attempt} body={payload?.body ?? null} />
        ))}
      </section>
      {payload !== null && (
        <section className="section" aria-labelledby="arrived-title">
          <h2 id="arrived-title">What arrived</h2>
          <CodeBlock
            label="Headers"
            code={`POST ${payload.path}\n${headerLines(payload.headers)}`}
            isWrapped
          />
          <CodeBlock
            label="Body"
            code={payload.body_encoding === "utf8" ? prettyJson(payload.body) : payload.body}
          />
        </section>
      )}
    </>
  );
}

function Attempt({ attempt, body }: { readonly attempt: EventAttempt; readonly body: string | null }) {
  const {
    number,
    trigger,
    started_at: at,
    duration_ms: ms,
    outcome,
    status,
    error,
    request,
    response,
  } = attempt;
  return (
    <article className="attempt" aria-label={`Attempt ${number}`}>
      <p>
        <strong>Attempt {number}</strong>{" "}
        <Badge tone={outcome === "delivered" ? "good" : "bad"}>{status ?? outcome}</Badge>{" "}
        <span className="muted">
          {trigger}, <Time at={at} />, {ms} ms{error === null ? "" : `: ${error}`}
        </span>
      </p>
      {request !== null && (
        <div className="side-by-side">
          <div>
            <h3>Request</h3>
            <CodeBlock
              label={`Request of attempt ${number}`}
              code={`${request.method} ${request.url}\n${headerLines(request.headers)}${body === null ? "" : `\n\n${prettyJson(body)}`}`}
              isWrapped
            />
          </div>
          <div>
            <h3>Response</h3>
            {response === null ? (
              <p className="muted">No response: {error}</p>
            ) : (
              <CodeBlock
                label={`Response of attempt ${number}`}
                code={`${status ?? ""}\n${headerLines(response.headers)}\n\n${response.body}`}
                isWrapped
              />
            )}
          </div>
        </div>
      )}
    </article>
  );
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}
