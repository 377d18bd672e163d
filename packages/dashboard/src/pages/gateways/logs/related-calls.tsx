import type { FoundCall } from "@signalbox/client";
import { withQuery } from "../../../http/api.ts";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { addressOf } from "../whom/whom-kind.ts";
import { parseMetadata } from "./call-metadata.ts";
import { CallTable } from "./call-table.tsx";
import type { Call } from "./call.ts";
import type { LogColumn } from "./log-columns.ts";
import { entryConditions } from "./use-log-filters.ts";

/** Keys of the metadata under which applications keep what belongs together, in the order in which they are tried. */
export const SESSION_KEYS = [
  "session",
  "session_id",
  "conversation",
  "conversation_id",
  "thread_id",
  "chat_id",
  "trace_id",
];
const LIMIT = 10;
const COLUMNS: ReadonlySet<LogColumn> = new Set(["duration", "cost"]);

/** The key and the value of the session that a call belongs to; null if its metadata names none. */
export function sessionOf(metadata: string | undefined): readonly [key: string, value: string] | null {
  const entries = parseMetadata(metadata);
  for (const key of SESSION_KEYS) {
    const value = entries[key];
    if (value !== undefined && value !== "") return [key, value];
  }
  return null;
}

/** The newest calls of the same session. */
export function RelatedCalls({ gatewayId, call }: { readonly gatewayId: string; readonly call: Call }) {
  const { api, page } = useAccountPaths();
  const session = sessionOf(call.metadata);
  const filters = session === null ? [] : entryConditions(session.join("="));
  const calls = useList<FoundCall>(
    session === null
      ? null
      : withQuery(api("ai-gateway", "logs"), {
          gateway_id: gatewayId,
          filters: JSON.stringify(filters),
          limit: LIMIT,
        }),
  );
  if (session === null || calls.value === undefined) return null;
  const [key, value] = session;
  return (
    <section className="section" aria-labelledby="related-title">
      <div className="row spread">
        <h2 id="related-title">Calls of the same session</h2>
        <Link to={addressOf(page, { kind: "session", key }, value)}>
          {key} {value}
        </Link>
      </div>
      <CallTable calls={calls.value} columns={COLUMNS} selected={call.id} onSelect={() => false} />
    </section>
  );
}
