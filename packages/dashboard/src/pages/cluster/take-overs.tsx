/** The instances that nodes have taken from nodes that were gone, newest first. */
import type { TakeOver } from "@signalbox/client";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";

const MAX_SHOWN = 20;

interface TakeOverOfNode extends TakeOver {
  readonly to: string;
}

export function TakeOvers({ takeOvers }: { readonly takeOvers: readonly TakeOverOfNode[] }) {
  const newest = takeOvers.toSorted((a, b) => b.at.localeCompare(a.at)).slice(0, MAX_SHOWN);
  return (
    <>
      <h3>Last take-overs</h3>
      {newest.length === 0 ? (
        <p className="muted small">
          None. When a node is gone, another one takes over an instance as soon as an event, a connection or
          due work needs it.
        </p>
      ) : (
        <Table
          label="Last take-overs"
          rows={newest}
          keyOf={({ at, account, agent, name }) => [at, account, agent, name].join("/")}
          columns={[
            {
              title: "Instance",
              cell: (row) => <code className="nowrap">{`${row.agent}/${row.name}`}</code>,
            },
            { title: "Account", cell: ({ account }) => account, isMinor: true },
            { title: "From", cell: ({ from }) => <span className="nowrap">{from ?? "unknown"}</span> },
            { title: "To", cell: ({ to }) => <span className="nowrap">{to}</span> },
            { title: "Time", cell: ({ at }) => <Time at={at} />, align: "end" },
          ]}
        />
      )}
    </>
  );
}
