import type { FoundCall } from "@signalbox/client";
import { Badge } from "../../../components/badge.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { count, duration, money } from "../../../format/number.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { parseMetadata } from "./call-metadata.ts";
import type { Call } from "./call.ts";

interface CallTableProps {
  readonly calls: readonly FoundCall[];
  readonly hasGateway: boolean;
}

export function CallTable({ calls, hasGateway }: CallTableProps) {
  const { page } = useAccountPaths();
  return (
    <Table
      label="Calls"
      rows={calls}
      keyOf={(call) => call.id}
      columns={[
        {
          title: hasGateway ? "Time, gateway" : "Time",
          cell: (call) => (
            <span className="cell-lines">
              <Link to={page("gateways", call.gateway_id, "logs", call.id)} className="nowrap">
                <Time at={call.created_at} />
              </Link>
              {hasGateway && <span className="muted small long-id">{call.gateway_id}</span>}
            </span>
          ),
        },
        {
          title: "Status",
          cell: (call) => (
            <span className="cell-lines">
              <StatusBadge call={call} />
              <span className="muted small nowrap" title="Duration">
                {duration(call.duration)}
              </span>
            </span>
          ),
        },
        {
          title: "Model",
          cell: (call) => (
            <span className="cell-lines">
              <span className="long-id" title={call.model}>
                {call.model === "" ? <span className="muted">none</span> : call.model}
              </span>
              <span className="muted small">{call.provider}</span>
            </span>
          ),
        },
        { title: "Prompt", cell: (call) => <Preview text={call.prompt} /> },
        { title: "Answer", isMinor: true, cell: (call) => <Preview text={call.answer} /> },
        { title: "Metadata", isMinor: true, cell: (call) => <Metadata call={call} /> },
        {
          title: "Cost, tokens",
          align: "end",
          cell: (call) => (
            <span className="cell-lines">
              <span>{money(call.cost)}</span>
              <span className="muted small" title="Input → output tokens">
                {count(call.tokens_in)} → {count(call.tokens_out)}
              </span>
            </span>
          ),
        },
      ]}
    />
  );
}

function Preview({ text }: { readonly text: string | null }) {
  return text === null ? <span className="muted">–</span> : <span className="text-preview">{text}</span>;
}

/** The user first, then the other metadata. */
function Metadata({ call }: { readonly call: Call }) {
  const { user, ...rest } = parseMetadata(call.metadata);
  const others = Object.entries(rest).map(([key, value]) => `${key}=${value}`);
  if (user === undefined && others.length === 0) return <span className="muted">–</span>;
  return (
    <span className="cell-lines">
      {user !== undefined && <span className="long-id">{user}</span>}
      {others.length > 0 && (
        <span className="muted small long-id" title={others.join("\n")}>
          {others.join(" ")}
        </span>
      )}
    </span>
  );
}

export function StatusBadge({ call }: { readonly call: Call }) {
  return (
    <span className="badges">
      <Badge tone={call.success ? "good" : "bad"}>{call.status_code}</Badge>
      {call.cached && <Badge tone="accent">cached</Badge>}
      {call.step > 0 && <Badge tone="warn">fallback {call.step}</Badge>}
    </span>
  );
}
