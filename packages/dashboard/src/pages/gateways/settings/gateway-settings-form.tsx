import { type FormEvent, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useAccountPaths, useHasPermission } from "../../../session/session.ts";
import type { Gateway, GatewayChange } from "../gateway.ts";

interface GatewaySettingsFormProps {
  readonly gateway: Gateway;
  readonly onChange: () => void;
}

/** Logs, cache, rate limit, costs of callers and retries. An empty number field means the default, which is shown as the placeholder. */
export function GatewaySettingsForm({ gateway, onChange }: GatewaySettingsFormProps) {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("gateway.edit");
  const [draft, setDraft] = useState<GatewayChange>({});
  const shown = { ...gateway, ...draft };
  const change = (part: GatewayChange) => setDraft((before) => ({ ...before, ...part }));
  const save = useAction(async () => {
    await request(api("ai-gateway", "gateways", gateway.id), { method: "PUT", body: draft });
    onChange();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void save.run();
  };
  return (
    <section className="panel" aria-labelledby="gateway-settings-title">
      <h2 id="gateway-settings-title">Gateway settings</h2>
      <form onSubmit={submit} className="stack">
        <fieldset className="fieldset" disabled={!canEdit}>
          <legend className="visually-hidden">Gateway settings</legend>
          <div className="form-grid">
            <Field label="Logs">
              <select
                value={shown.collect_logs ? "on" : "off"}
                onChange={({ target }) => change({ collect_logs: target.value === "on" })}
              >
                <option value="on">Log calls with bodies</option>
                <option value="off">Off</option>
              </select>
            </Field>
            <NumberField
              title="Maximum logged calls"
              value={shown.log_management}
              onChange={(value) =>
                change({
                  log_management: value,
                  log_management_strategy:
                    value === null ? null : (shown.log_management_strategy ?? "DELETE_OLDEST"),
                })
              }
              placeholder="No limit"
            />
            <NumberField
              title="Cache TTL (seconds)"
              value={shown.cache_ttl}
              onChange={(cache_ttl) => change({ cache_ttl })}
              placeholder="Off"
            />
            <NumberField
              title="Rate limit (calls)"
              value={shown.rate_limiting_limit}
              onChange={(value) =>
                change({
                  rate_limiting_limit: value,
                  rate_limiting_interval: value === null ? null : (shown.rate_limiting_interval ?? 60),
                })
              }
              placeholder="Off"
            />
            <NumberField
              title="Rate limit interval (seconds)"
              value={shown.rate_limiting_interval}
              onChange={(rate_limiting_interval) => change({ rate_limiting_interval })}
              placeholder="60"
            />
            <Field label="Rate limit window">
              <select
                value={shown.rate_limiting_technique ?? "fixed"}
                onChange={({ target }) =>
                  change({ rate_limiting_technique: target.value === "sliding" ? "sliding" : "fixed" })
                }
              >
                <option value="fixed">Fixed</option>
                <option value="sliding">Sliding</option>
              </select>
            </Field>
            <Field
              label="Cost that callers state"
              hint="The header gw-aig-custom-cost. A token with the permission gateway.price is always trusted."
            >
              <select
                value={shown.trust_custom_cost ? "limits" : "rows"}
                onChange={({ target }) => change({ trust_custom_cost: target.value === "limits" })}
              >
                <option value="rows">Shown in logs only</option>
                <option value="limits">Counts in limits</option>
              </select>
            </Field>
            <NumberField
              title="Maximum attempts"
              value={shown.retry_max_attempts}
              max={5}
              onChange={(retry_max_attempts) => change({ retry_max_attempts })}
              placeholder="1"
            />
            <NumberField
              title="Retry delay (ms)"
              value={shown.retry_delay}
              onChange={(retry_delay) => change({ retry_delay })}
              placeholder="None"
            />
            <Field label="Retry backoff">
              <select
                value={shown.retry_backoff ?? "constant"}
                onChange={({ target }) =>
                  change({ retry_backoff: target.value as NonNullable<Gateway["retry_backoff"]> })
                }
              >
                <option value="constant">Constant</option>
                <option value="linear">Linear</option>
                <option value="exponential">Exponential</option>
              </select>
            </Field>
          </div>
        </fieldset>
        {save.error !== null && <ErrorNotice error={save.error} />}
        <div className="row">
          <Button
            type="submit"
            kind="primary"
            isBusy={save.isBusy}
            disabled={!canEdit || Object.keys(draft).length === 0}
          >
            Save changes
          </Button>
          {Object.keys(draft).length > 0 && <Button onClick={() => setDraft({})}>Discard changes</Button>}
        </div>
      </form>
    </section>
  );
}

interface NumberFieldProps {
  readonly title: string;
  readonly value: number | null;
  readonly onChange: (value: number | null) => void;
  readonly placeholder: string;
  readonly max?: number;
}

function NumberField({ title, value, onChange, placeholder, max }: NumberFieldProps) {
  return (
    <Field label={title}>
      <input
        type="number"
        min={0}
        max={max}
        step={1}
        value={value ?? ""}
        placeholder={placeholder}
        onChange={({ target }) => onChange(target.value === "" ? null : target.valueAsNumber)}
      />
    </Field>
  );
}
