import { Badge } from "../../components/badge.tsx";
import { Elapsed } from "../../components/elapsed.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count, durationOf } from "../../format/number.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import type { Instance } from "./agent.ts";
import { Rate } from "./rate.tsx";

interface InstanceTableProps {
  readonly rows: readonly Instance[];
  /** The rows are of several agents. */
  readonly hasAgents?: boolean;
}

/** The service counts queued items up to this number. */
const MAX_QUEUED = 10_000;

/** Instances with what is wrong with them. */
export function InstanceTable({ rows, hasAgents = false }: InstanceTableProps) {
  const { page } = useAccountPaths();
  // Lists of problems have none.
  const hasRates = rows.some(({ turns }) => turns !== undefined && turns.length > 0);
  return (
    <Table
      label="Instances"
      rows={rows}
      keyOf={({ agent, name }) => `${agent}/${name}`}
      columns={[
        {
          title: "Instance",
          cell: ({ agent, name, object_name: objectName }) => (
            <div className="cell-name">
              <Link to={page("agents", agent, name)}>{objectName ?? name}</Link>
              {hasAgents && <div className="muted small">{agent}</div>}
            </div>
          ),
        },
        { title: "Status", cell: (instance) => <InstanceStatus instance={instance} /> },
        ...(rows.some(({ node }) => node !== null)
          ? [{ title: "Node", isMinor: true, cell: ({ node }: Instance) => node ?? "–" }]
          : []),
        ...(hasRates
          ? [
              {
                title: "Turns, 1 h",
                cell: ({ turns = [] }: Instance) => <Rate turns={turns} />,
              },
              {
                title: "p95",
                align: "end" as const,
                isMinor: true,
                amount: ({ turn_p95_ms: p95 }: Instance) => p95,
                formatOf: durationOf,
              },
            ]
          : []),
        {
          title: "Dead letters",
          align: "end",
          cell: ({ agent, name, dead_letters: letters }) =>
            letters === 0 ? (
              <span className="muted">0</span>
            ) : (
              <Link to={page("agents", agent, name, "dead-letters")}>
                <Badge tone="bad">{count(letters)}</Badge>
              </Link>
            ),
        },
        {
          title: "Queued",
          align: "end",
          cell: ({ agent, name, queued, retrying }) =>
            queued === 0 ? (
              <span className="muted">0</span>
            ) : (
              <>
                <Link to={page("agents", agent, name, "queue")}>
                  {queued >= MAX_QUEUED ? `${count(MAX_QUEUED)}+` : count(queued)}
                </Link>
                {retrying > 0 && <div className="muted small">{count(retrying)} retrying</div>}
              </>
            ),
        },
        {
          title: "Last error",
          cell: ({ last_error: error, last_error_at: at }) =>
            error === null ? (
              <span className="muted">–</span>
            ) : (
              <span className="cell-line cell-line-short">
                <span className="cell-line-text" title={error}>
                  {error}
                </span>
                <span className="muted small nowrap">
                  <Time at={at} />
                </span>
              </span>
            ),
        },
        {
          title: "Connections",
          align: "end",
          isMinor: true,
          isExtra: true,
          cell: (instance) => instance.connection_count,
        },
        {
          title: "Last active",
          align: "end",
          cell: (instance) => <Time at={instance.last_active_at} />,
        },
      ]}
    />
  );
}

function InstanceStatus({ instance }: { readonly instance: Instance }) {
  const { busy_since: busySince, turn, waiting_turns: waiting, in_memory: isActive } = instance;
  if (busySince == null) return <span className="muted">{isActive ? "active" : "idle"}</span>;
  return (
    <>
      <Badge tone="warn">
        busy for <Elapsed since={busySince} />
      </Badge>
      {(turn != null || waiting > 0) && (
        <div className="muted small">
          {turn != null && `${turn.kind} ${turn.label}`}
          {waiting > 0 && `, ${count(waiting)} waiting`}
        </div>
      )}
    </>
  );
}
