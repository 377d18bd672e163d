import type { OtelReceiver } from "@signalbox/client";
import { type FormEvent, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { EditRows } from "../../../components/edit-rows.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { LinesField } from "../../../components/lines-field.tsx";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useAccountPaths, useHasPermission } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";

interface TelemetryFormProps {
  readonly gateway: Gateway;
  readonly onChange: () => void;
}

interface ReceiverDraft {
  readonly url: string;
  readonly content_type: OtelReceiver["content_type"];
  readonly authorization: string;
  /** One header in each line. */
  readonly headers: string;
}

const BLANK: ReceiverDraft = { url: "", content_type: "json", authorization: "", headers: "" };
const MAX_RECEIVERS = 5;

/**
 * The OpenTelemetry receivers of the gateway's spans. Values of headers are shown as `[secret]`, which keeps the stored ones. The parent mounts
 * it again when others have changed them.
 */
export function TelemetryForm({ gateway, onChange }: TelemetryFormProps) {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("gateway.edit");
  const [receivers, setReceivers] = useState(() => (gateway.otel ?? []).map(toDraft));
  const [hasContent, setHasContent] = useState(gateway.otel_content);
  const [isChanged, setIsChanged] = useState(false);
  const save = useAction(async () => {
    const otel = receivers.length === 0 ? null : receivers.map(toReceiver);
    const body = { otel, otel_content: hasContent };
    const path = api("ai-gateway", "gateways", gateway.id);
    const { result } = await request<Gateway>(path, { method: "PUT", body });
    // The new values of headers are shown as `[secret]`, too.
    setReceivers((result.otel ?? []).map(toDraft));
    setIsChanged(false);
    onChange();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void save.run();
  };
  return (
    <section className="panel" aria-labelledby="gateway-telemetry-title">
      <h2 id="gateway-telemetry-title">OpenTelemetry</h2>
      <form onSubmit={submit} className="stack">
        <fieldset className="fieldset" disabled={!canEdit}>
          <legend className="visually-hidden">OpenTelemetry</legend>
          <EditRows
            legend="Receivers of traces"
            hint="A span for each call, with one below it for each attempt. Values of headers are stored encrypted and shown as [secret]."
            noun="receiver"
            rows={receivers}
            blank={BLANK}
            max={MAX_RECEIVERS}
            onChange={(rows) => {
              setReceivers([...rows]);
              setIsChanged(true);
            }}
          >
            {(row, change) => (
              <>
                <Field label="Address">
                  <input
                    required
                    value={row.url}
                    spellCheck={false}
                    placeholder="https://collector.example.com/v1/traces"
                    onChange={({ target }) => change({ url: target.value })}
                  />
                </Field>
                <Field label="Format">
                  <select
                    value={row.content_type}
                    onChange={({ target }) =>
                      change({ content_type: target.value === "protobuf" ? "protobuf" : "json" })
                    }
                  >
                    <option value="json">JSON</option>
                    <option value="protobuf">Protobuf</option>
                  </select>
                </Field>
                <Field label="Authorization (optional)">
                  <input
                    value={row.authorization}
                    spellCheck={false}
                    autoComplete="off"
                    placeholder="Bearer …"
                    onChange={({ target }) => change({ authorization: target.value })}
                  />
                </Field>
                <LinesField
                  label="Headers (optional)"
                  hint="One in each line."
                  value={row.headers}
                  placeholder="x-api-key: …"
                  onChange={(headers) => change({ headers })}
                />
              </>
            )}
          </EditRows>
          <label className="check">
            <input
              type="checkbox"
              checked={hasContent}
              onChange={({ target }) => {
                setHasContent(target.checked);
                setIsChanged(true);
              }}
            />
            <span>Send prompts and answers, too</span>
          </label>
        </fieldset>
        {save.error !== null && <ErrorNotice error={save.error} />}
        <div className="row">
          <Button type="submit" kind="primary" isBusy={save.isBusy} disabled={!canEdit || !isChanged}>
            Save telemetry
          </Button>
        </div>
      </form>
    </section>
  );
}

function toDraft({ url, content_type, authorization, headers }: OtelReceiver): ReceiverDraft {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return { url, content_type, authorization: authorization ?? "", headers: lines.join("\n") };
}

/** A line without a colon is a name without a value: the server names it in its error. */
function toReceiver({ url, content_type, authorization, headers }: ReceiverDraft): OtelReceiver {
  const lines = headers.split("\n").filter((line) => line.trim() !== "");
  const pairs = lines.map((line) => {
    const at = line.indexOf(":");
    return at === -1 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  const known = { url, content_type, headers: Object.fromEntries(pairs) as Record<string, string> };
  return authorization === "" ? known : { ...known, authorization };
}
