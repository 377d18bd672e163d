import { EmptyState } from "../../components/empty-state.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { TimeRangePicker } from "../../components/time-range/time-range-picker.tsx";
import { useTimeRange } from "../../components/time-range/use-time-range.ts";
import { count } from "../../format/number.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccount } from "../../session/session.ts";
import { FindingsView } from "./findings-view.tsx";

const MAX_CALLS = 10_000;

/** What the rules found in the calls of a time. */
export function CaughtSection({ gatewayId }: { readonly gatewayId: string | undefined }) {
  const account = useAccount();
  const time = useTimeRange();
  const { from, to } = time.range;
  const found = useResource(`findings ${account.id} ${gatewayId ?? ""} ${from} ${to}`, (signal) =>
    account.guardrails.findings(
      {
        ...(gatewayId === undefined ? {} : { gateway_id: gatewayId }),
        start_date: new Date(from).toISOString(),
        end_date: new Date(to).toISOString(),
        limit: MAX_CALLS,
      },
      { signal },
    ),
  );
  return (
    <section className="section" aria-labelledby="guardrail-caught-title">
      <div className="row spread">
        <h2 id="guardrail-caught-title">What was caught</h2>
        <TimeRangePicker state={time} />
      </div>
      <ResourceView of={found}>
        {(value) =>
          value.rules.length === 0 ? (
            <EmptyState title="Nothing was found">
              <p>No guardrail found anything in the stored calls of this time.</p>
            </EmptyState>
          ) : (
            <div className="stack">
              <p className="muted">
                Calls: {count(value.block)} blocked, {count(value.mask)} masked, {count(value.flag)} flagged
                {value.cursor === null ? "." : ", and there are earlier ones: choose a shorter time."}
              </p>
              <FindingsView found={value} />
            </div>
          )
        }
      </ResourceView>
    </section>
  );
}
