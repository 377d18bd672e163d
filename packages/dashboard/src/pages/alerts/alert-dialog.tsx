import type { Alert, AlertMetric, AlertReceiver } from "@signalbox/client";
import { useState } from "react";
import { EditRows } from "../../components/edit-rows.tsx";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { request } from "../../http/api.ts";
import { METRIC_TITLES, METRIC_UNITS } from "./alert-metrics.ts";

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
    threshold: String(edited?.threshold ?? 0.05),
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
  const isOnSources = ["failed_deliveries", "paused_routes", "webhook_issues"].includes(draft.metric);
  const save = async () => {
    const body = {
      ...draft,
      threshold: Number(draft.threshold),
      window: Number(draft.window),
      min_calls: Number(draft.min_calls),
      quiet_period: Number(draft.quiet_period),
      gateway_id: isOnCalls && draft.gateway_id !== "" ? draft.gateway_id : null,
      provider: isOnCalls && draft.provider !== "" ? draft.provider : null,
      source: isOnSources && draft.source !== "" ? draft.source : null,
      receivers: draft.receivers.map(toReceiver),
    };
    await (edited === null
      ? request(path, { method: "POST", body })
      : request(`${path}/${encodeURIComponent(edited.id)}`, { method: "PUT", body }));
    onSaved();
  };
  const number = (
    label: string,
    name: "threshold" | "window" | "min_calls" | "quiet_period",
    hint: string,
  ) => (
    <Field label={label} hint={hint}>
      <input
        type="number"
        required
        min={0}
        step="any"
        value={draft[name]}
        onChange={({ target }) => change({ [name]: target.value })}
      />
    </Field>
  );
  const text = (label: string, name: "gateway_id" | "provider" | "source", hint: string) => (
    <Field label={label} hint={hint}>
      <input
        value={draft[name]}
        spellCheck={false}
        onChange={({ target }) => change({ [name]: target.value })}
      />
    </Field>
  );
  return (
    <FormDialog
      title={edited === null ? "Create alert" : `Edit ${edited.name}`}
      verb={edited === null ? "Create alert" : "Save alert"}
      onSubmit={save}
      onClose={onClose}
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
          onChange={({ target }) => change({ metric: target.value as AlertMetric })}
        >
          {Object.entries(METRIC_TITLES).map(([metric, title]) => (
            <option key={metric} value={metric}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      {number("Fires at or above", "threshold", METRIC_UNITS[draft.metric])}
      {number("Window", "window", "Seconds that are measured, from 60 to 86400.")}
      {(draft.metric === "error_rate" || draft.metric === "latency_p95") &&
        number("At least", "min_calls", "Calls in the window; with fewer the rule does not fire.")}
      {isOnCalls && text("Gateway (optional)", "gateway_id", "Empty: all gateways of the account.")}
      {isOnCalls && text("Provider (optional)", "provider", "Empty: all providers.")}
      {isOnSources && text("Source (optional)", "source", "Empty: all sources.")}
      {number("Quiet period", "quiet_period", "Seconds after a notice in which no other one is sent.")}
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
