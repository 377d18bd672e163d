import { useState } from "react";
import { TimeRangePicker } from "../../components/time-range/time-range-picker.tsx";
import { useTimeRange } from "../../components/time-range/use-time-range.ts";
import { Field } from "../../components/field.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { count, moneyOf, share } from "../../format/number.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccount } from "../../session/session.ts";

const GROUPS = ["model", "provider", "gateway", "day"] as const;

/** Calls, tokens and cost of one token in a time range. */
export function TokenUsage({ id }: { readonly id: string }) {
  const account = useAccount();
  const [group, setGroup] = useState<(typeof GROUPS)[number]>("model");
  const time = useTimeRange("7d");
  const period = {
    start: new Date(time.range.from).toISOString(),
    end: new Date(time.range.to).toISOString(),
  };
  const usage = useResource(`${id} ${group} ${period.start} ${period.end}`, (signal) =>
    account.tokens.usage(id, { group_by: [group], ...period }, { signal }),
  );
  return (
    <section className="section" aria-labelledby="token-usage-title">
      <h2 id="token-usage-title">Usage, {time.range.title}</h2>
      <div className="filters">
        <TimeRangePicker state={time} />
        <Field label="Group by">
          <select value={group} onChange={({ target }) => setGroup(target.value as typeof group)}>
            {GROUPS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </Field>
      </div>
      <ResourceView of={usage}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="muted">No calls with this token in this time range.</p>
          ) : (
            <Table
              label="Usage"
              rows={rows}
              keyOf={(row) => row.model ?? row.provider ?? row.gateway_id ?? row.day ?? ""}
              columns={[
                {
                  title: group,
                  cell: (row) => row.model ?? row.provider ?? row.gateway_id ?? row.day?.slice(0, 10) ?? "–",
                },
                { title: "Calls", align: "end", cell: ({ calls }) => count(calls) },
                { title: "Errors", align: "end", cell: ({ errors, calls }) => share(errors, calls) },
                {
                  title: "Tokens",
                  align: "end",
                  isMinor: true,
                  cell: ({ tokens_in: input, tokens_out: output }) => count(input + output),
                },
                { title: "Cost", amount: ({ cost }) => cost, formatOf: moneyOf },
              ]}
            />
          )
        }
      </ResourceView>
    </section>
  );
}
