import type { FoundCall } from "@signalbox/client";
import { Button } from "../../../components/button.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Time } from "../../../components/time.tsx";
import type { TimeRange } from "../../../components/time-range/time-range.ts";
import { duration, moneyOf } from "../../../format/number.ts";
import { withQuery } from "../../../http/api.ts";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { StatusBadge } from "../logs/call-table.tsx";
import { entryConditions } from "../logs/use-log-filters.ts";

const LIMIT = 20;

interface ConversationProps {
  /** `user=ada`, an entry of the metadata. */
  readonly entry: string;
  readonly range: TimeRange;
  readonly isOldestFirst: boolean;
}

/** The beginning of each prompt and of its answer, as they followed each other. */
export function Conversation({ entry, range, isOldestFirst }: ConversationProps) {
  const { api, page } = useAccountPaths();
  const calls = useList<FoundCall>(
    withQuery(api("ai-gateway", "logs"), {
      filters: JSON.stringify(entryConditions(entry)),
      start_date: new Date(range.from).toISOString(),
      end_date: new Date(range.to).toISOString(),
      direction: isOldestFirst ? "asc" : "desc",
      limit: LIMIT,
    }),
  );
  const cost = moneyOf((calls.value ?? []).map((call) => call.cost));
  return (
    <section className="section" aria-labelledby="conversation-title">
      <h2 id="conversation-title">{isOldestFirst ? "Conversation" : "Latest calls"}</h2>
      <ResourceView of={calls}>
        {(rows) => (
          <>
            {rows.length === 0 && !calls.hasMore && <p className="muted">No calls in this time.</p>}
            <ol className="conversation">
              {rows.map((call) => (
                <li key={call.id}>
                  <div className="conversation-head">
                    <Link to={page("gateways", call.gateway_id, "logs", call.id)}>
                      <Time at={call.created_at} as="clock" />
                    </Link>
                    <StatusBadge call={call} />
                    <span className="muted small">
                      {call.model} · {duration(call.duration)} · {cost(call.cost)}
                    </span>
                  </div>
                  {call.prompt !== null && <p className="message">{call.prompt}</p>}
                  {call.answer !== null && (
                    <p className={`message ${call.success ? "message-assistant" : "message-failed"}`}>
                      {call.answer}
                    </p>
                  )}
                </li>
              ))}
            </ol>
            {calls.hasMore && (
              <div className="row">
                <Button onClick={calls.loadMore}>Show more</Button>
              </div>
            )}
          </>
        )}
      </ResourceView>
    </section>
  );
}
