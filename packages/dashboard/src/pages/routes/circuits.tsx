import type { Circuit, RoutesApi } from "@signalbox/client";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { useAction } from "../../http/use-action.ts";
import { useResource } from "../../http/use-resource.ts";

const REFRESH_MS = 5000;

const STATES: Readonly<Record<Circuit["state"], { readonly title: string; readonly tone: Tone }>> = {
  closed: { title: "closed", tone: "good" },
  open: { title: "open", tone: "bad" },
  half_open: { title: "half open", tone: "warn" },
};

interface CircuitsProps {
  readonly api: RoutesApi;
  /** Identifies account and gateway. */
  readonly gatewayKey: string;
  readonly canEdit: boolean;
}

/** Targets with recent failures. An open circuit is skipped by calls that have another step. */
export function Circuits({ api, gatewayKey, canEdit }: CircuitsProps) {
  const circuits = useResource(`circuits ${gatewayKey}`, (signal) => api.circuits({ signal }), {
    refreshMs: REFRESH_MS,
  });
  const close = useAction(async () => {
    await api.closeCircuits();
    circuits.reload();
  });
  return (
    <section className="section" aria-labelledby="circuits-title">
      <div className="row spread">
        <h2 id="circuits-title">Circuits</h2>
        {canEdit && circuits.value !== undefined && circuits.value.length > 0 && (
          <Button isBusy={close.isBusy} onClick={() => void close.run()}>
            Close all
          </Button>
        )}
      </div>
      {close.error !== null && <ErrorNotice error={close.error} />}
      <ResourceView of={circuits}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="muted">No target has failed recently.</p>
          ) : (
            <Table
              label="Circuits"
              rows={rows}
              keyOf={({ provider, model, key_id: key }) => `${provider} ${model} ${key ?? ""}`}
              columns={[
                {
                  title: "Target",
                  cell: ({ provider, model, key_id: key }) => (
                    <>
                      {provider}/{model}
                      {key !== null && <div className="muted small">key {key}</div>}
                    </>
                  ),
                },
                {
                  title: "State",
                  cell: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].title}</Badge>,
                },
                {
                  title: "Failures",
                  align: "end",
                  cell: ({ failures, calls, failures_in_a_row: row }) =>
                    `${failures} of ${calls}, ${row} in a row`,
                },
                {
                  title: "Opened",
                  isMinor: true,
                  cell: ({ opened_at: at }) => <Time at={at} fallback="–" />,
                },
                { title: "Next probe", cell: ({ probe_at: at }) => <Time at={at} fallback="–" isDue /> },
              ]}
            />
          )
        }
      </ResourceView>
    </section>
  );
}
