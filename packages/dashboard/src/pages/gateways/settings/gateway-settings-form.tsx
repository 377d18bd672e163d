import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { SelectField } from "../../../components/select-field.tsx";
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
  const [edited, setEdited] = useState<GatewayChange>({});
  const shown = { ...gateway, ...edited };
  // What is saved is no change any more, and what is saved elsewhere on the page keeps what was edited here.
  const draft = differences(edited, gateway);
  if (Object.keys(edited).length > 0 && Object.keys(draft).length === 0) setEdited({});
  const change = (part: GatewayChange) => setEdited((before) => ({ ...before, ...part }));
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
          <div className="setting-groups">
            <SettingGroup title="Logs">
              <SelectField
                label="Calls"
                value={shown.collect_logs ? "on" : "off"}
                options={[
                  ["on", "Log calls with bodies"],
                  ["off", "Off"],
                ]}
                onChange={(value) => change({ collect_logs: value === "on" })}
              />
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
              <SelectField
                label="At the maximum"
                value={shown.log_management_strategy ?? "DELETE_OLDEST"}
                isDisabled={shown.log_management === null}
                options={[
                  ["DELETE_OLDEST", "Delete the oldest"],
                  ["STOP_INSERTING", "Log no more calls"],
                ]}
                onChange={(log_management_strategy) => change({ log_management_strategy })}
              />
            </SettingGroup>
            <SettingGroup title="Rate limit">
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
                title="Interval (seconds)"
                value={shown.rate_limiting_interval}
                onChange={(rate_limiting_interval) => change({ rate_limiting_interval })}
                placeholder="60"
              />
              <SelectField
                label="Window"
                value={shown.rate_limiting_technique ?? "fixed"}
                options={[
                  ["fixed", "Fixed"],
                  ["sliding", "Sliding"],
                ]}
                onChange={(rate_limiting_technique) => change({ rate_limiting_technique })}
              />
            </SettingGroup>
            <SettingGroup title="Retries">
              <NumberField
                title="Maximum attempts"
                value={shown.retry_max_attempts}
                max={5}
                onChange={(retry_max_attempts) => change({ retry_max_attempts })}
                placeholder="1"
              />
              <NumberField
                title="Delay (ms)"
                value={shown.retry_delay}
                onChange={(retry_delay) => change({ retry_delay })}
                placeholder="None"
              />
              <SelectField
                label="Backoff"
                value={shown.retry_backoff ?? "constant"}
                options={[
                  ["constant", "Constant"],
                  ["linear", "Linear"],
                  ["exponential", "Exponential"],
                ]}
                onChange={(retry_backoff) => change({ retry_backoff })}
              />
            </SettingGroup>
            <SettingGroup title="Cache and cost">
              <NumberField
                title="Cache TTL (seconds)"
                value={shown.cache_ttl}
                onChange={(cache_ttl) => change({ cache_ttl })}
                placeholder="Off"
              />
              <SelectField
                label="Cache after a change of settings"
                value={shown.cache_invalidate_on_update ? "clear" : "keep"}
                options={[
                  ["keep", "Keep"],
                  ["clear", "Clear"],
                ]}
                onChange={(value) => change({ cache_invalidate_on_update: value === "clear" })}
              />
              <SelectField
                label="Cost that callers state"
                hint="The header gw-aig-custom-cost. A token with the permission gateway.price is always trusted."
                value={shown.trust_custom_cost ? "limits" : "rows"}
                options={[
                  ["rows", "Shown in logs only"],
                  ["limits", "Counts in limits"],
                ]}
                onChange={(value) => change({ trust_custom_cost: value === "limits" })}
              />
              <SelectField
                label="Calls without a key of their provider"
                hint="Neither the caller sends one, nor is one stored for the provider."
                value={shown.byok_only ? "refuse" : "send"}
                options={[
                  ["send", "Sent without one"],
                  ["refuse", "Refused"],
                ]}
                onChange={(value) => change({ byok_only: value === "refuse" })}
              />
            </SettingGroup>
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
          {Object.keys(draft).length > 0 && <Button onClick={() => setEdited({})}>Discard changes</Button>}
        </div>
      </form>
    </section>
  );
}

function differences(edited: GatewayChange, gateway: Gateway): GatewayChange {
  const saved = new Map<string, unknown>(Object.entries(gateway));
  return Object.fromEntries(Object.entries(edited).filter(([name, value]) => saved.get(name) !== value));
}

/** Fields that belong together stay in one row. */
function SettingGroup({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <fieldset className="setting-group">
      <legend>{title}</legend>
      <div className="setting-fields">{children}</div>
    </fieldset>
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
