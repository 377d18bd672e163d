import type { Alert, AlertMetric, AlertReceiver } from "@signalbox/client";
import { useState } from "react";
import { EditRows } from "../../components/edit-rows.tsx";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { request } from "../../http/api.ts";
import { SelectField } from "../../components/select-field.tsx";
import { AlertPreview } from "./alert-preview.tsx";
import {
  METRIC_SIGNS,
  METRIC_TITLES,
  METRIC_UNITS,
  thresholdOf,
  typedThreshold,
  USUAL_THRESHOLDS,
} from "./alert-metrics.ts";
import { nameOptions, QUIET_PERIODS, spanOptions, useChoices, WINDOWS } from "./alert-choices.ts";

interface AlertDialogProps {
  /** Of the list of alerts. */
  readonly path: string;
  /** Null for a new alert. */
  readonly edited: Alert | null;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

interface ReceiverDraft {
  readonly type: "webhook" | "slack";
  readonly url: string;
  readonly secret: string;
}

const BLANK: ReceiverDraft = { type: "webhook", url: "", secret: "" };
const MAX_RECEIVERS = 5;

export function AlertDialog({ path, edited, onClose, onSaved }: AlertDialogProps) {
  const [draft, setDraft] = useState({
    name: edited?.name ?? "",
    metric: edited?.metric ?? "error_rate",
    threshold:
      edited === null ? USUAL_THRESHOLDS.error_rate : typedThreshold(edited.metric, edited.threshold),
    window: String(edited?.window ?? 300),
    min_calls: String(edited?.min_calls ?? 10),
    quiet_period: String(edited?.quiet_period ?? 3600),
    gateway_id: edited?.gateway_id ?? "",
    provider: edited?.provider ?? "",
    source: edited?.source ?? "",
    enabled: edited?.enabled ?? true,
    notify_resolved: edited?.notify_resolved ?? true,
    receivers: (edited?.receivers ?? [BLANK]).map(toDraft),
  });
  const change = (part: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...part }));
  const isOnCalls = ["error_rate", "latency_p95", "spend"].includes(draft.metric);
  const isOnGateways = isOnCalls || draft.metric === "guardrails";
  const isOnSources = ["failed_deliveries", "paused_routes", "webhook_issues"].includes(draft.metric);
  const save = async () => {
    const body = {
      ...draft,
      threshold: thresholdOf(draft.metric, draft.threshold),
      window: Number(draft.window),
      min_calls: Number(draft.min_calls),
      quiet_period: Number(draft.quiet_period),
      gateway_id: isOnGateways && draft.gateway_id !== "" ? draft.gateway_id : null,
      provider: isOnCalls && draft.provider !== "" ? draft.provider : null,
      source: isOnSources && draft.source !== "" ? draft.source : null,
      receivers: draft.receivers.map(toReceiver),
      // Set by programs; the form keeps it.
      ...(draft.metric === "guardrails" && edited?.guardrail !== undefined
        ? { guardrail: edited.guardrail }
        : {}),
    };
    await (edited === null
      ? request(path, { method: "POST", body })
      : request(`${path}/${encodeURIComponent(edited.id)}`, { method: "PUT", body }));
    onSaved();
  };
  const choices = useChoices(isOnGateways, isOnSources);
  return (
    <FormDialog
      title={edited === null ? "Create alert" : `Edit ${edited.name}`}
      verb={edited === null ? "Create alert" : "Save alert"}
      onSubmit={save}
      onClose={onClose}
      isWide
    >
      <Field label="Name">
        <input
          required
          maxLength={128}
          value={draft.name}
          placeholder="Errors of the production gateway"
          onChange={({ target }) => change({ name: target.value })}
        />
      </Field>
      <Field label="Metric">
        <select
          value={draft.metric}
          onChange={({ target }) => {
            const metric = target.value as AlertMetric;
            change({ metric, threshold: USUAL_THRESHOLDS[metric] });
          }}
        >
          {Object.entries(METRIC_TITLES).map(([metric, title]) => (
            <option key={metric} value={metric}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      <div className="form-pair">
        <Field label={`Fires at or above (${METRIC_SIGNS[draft.metric]})`} hint={METRIC_UNITS[draft.metric]}>
          <input
            type="number"
            required
            min={0}
            max={draft.metric === "error_rate" ? 100 : undefined}
            step="any"
            value={draft.threshold}
            onChange={({ target }) => change({ threshold: target.value })}
          />
        </Field>
        <SelectField
          label="Measured over"
          value={draft.window}
          options={spanOptions(WINDOWS, draft.window)}
          onChange={(window) => change({ window })}
        />
      </div>
      {isOnGateways && (
        <div className="form-pair">
          <SelectField
            label="Gateway"
            value={draft.gateway_id}
            options={nameOptions("All gateways", choices.gateways, draft.gateway_id)}
            onChange={(gateway_id) => change({ gateway_id })}
          />
          {isOnCalls && (
            <SelectField
              label="Provider"
              value={draft.provider}
              options={nameOptions("All providers", choices.providers, draft.provider)}
              onChange={(provider) => change({ provider })}
            />
          )}
        </div>
      )}
      {isOnSources && (
        <SelectField
          label="Source"
          value={draft.source}
          options={nameOptions("All sources", choices.sources, draft.source)}
          onChange={(source) => change({ source })}
        />
      )}
      <AlertPreview
        metric={draft.metric}
        threshold={thresholdOf(draft.metric, draft.threshold)}
        windowSeconds={Number(draft.window)}
        minCalls={Number(draft.min_calls)}
        gatewayId={isOnCalls ? draft.gateway_id : ""}
        provider={isOnCalls ? draft.provider : ""}
        source={isOnSources ? draft.source : ""}
      />
      <div className="form-pair">
        <SelectField
          label="Quiet period"
          hint="No other notice that it fires is sent in this time."
          value={draft.quiet_period}
          options={spanOptions(QUIET_PERIODS, draft.quiet_period)}
          onChange={(quiet_period) => change({ quiet_period })}
        />
        {(draft.metric === "error_rate" || draft.metric === "latency_p95") && (
          <Field label="At least this many calls" hint="With fewer in the window the rule does not fire.">
            <input
              type="number"
              required
              min={1}
              value={draft.min_calls}
              onChange={({ target }) => change({ min_calls: target.value })}
            />
          </Field>
        )}
      </div>
      <EditRows
        legend="Receivers"
        hint="Addresses of Slack and secrets are stored encrypted and shown as [secret]."
        noun="receiver"
        rows={draft.receivers}
        blank={BLANK}
        max={MAX_RECEIVERS}
        onChange={(receivers) => change({ receivers: [...receivers] })}
      >
        {(row, changeRow) => (
          <>
            <Field label="Kind">
              <select
                value={row.type}
                onChange={({ target }) => changeRow({ type: target.value === "slack" ? "slack" : "webhook" })}
              >
                <option value="webhook">Webhook</option>
                <option value="slack">Slack</option>
              </select>
            </Field>
            <Field label="Address">
              <input
                required
                value={row.url}
                spellCheck={false}
                placeholder={
                  row.type === "slack" ? "https://hooks.slack.com/services/…" : "https://example.com/alerts"
                }
                onChange={({ target }) => changeRow({ url: target.value })}
              />
            </Field>
            {row.type === "webhook" && (
              <Field label="Secret (optional)">
                <input
                  value={row.secret}
                  spellCheck={false}
                  autoComplete="off"
                  placeholder="whsec_…"
                  onChange={({ target }) => changeRow({ secret: target.value })}
                />
              </Field>
            )}
          </>
        )}
      </EditRows>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.notify_resolved}
          onChange={({ target }) => change({ notify_resolved: target.checked })}
        />
        <span>Also tell when it is over</span>
      </label>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.enabled}
          onChange={({ target }) => change({ enabled: target.checked })}
        />
        <span>Enabled</span>
      </label>
    </FormDialog>
  );
}

function toDraft(receiver: AlertReceiver | ReceiverDraft): ReceiverDraft {
  const secret = "secret" in receiver ? (receiver.secret ?? "") : "";
  return { type: receiver.type, url: receiver.url, secret };
}

function toReceiver({ type, url, secret }: ReceiverDraft): AlertReceiver {
  if (type === "slack") return { type, url };
  return secret === "" ? { type, url } : { type, url, secret };
}
