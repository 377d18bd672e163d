/** Sends a test event with an entity, type, payload and headers of the user's choice, and shows what became of it. */
import type { SampleResult, WebhookSample } from "@signalbox/client";
import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { EditRows } from "../../components/edit-rows.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { prettyJson } from "../../format/json.ts";
import { useAction } from "../../http/use-action.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccount } from "../../session/session.ts";
import { jsonProblem } from "./json-problem.ts";
import { TestResult } from "./test-result.tsx";
import type { Source } from "./webhook.ts";

interface TestEventDialogProps {
  readonly source: Source;
  readonly onSent: () => void;
  readonly onClose: () => void;
}

export function TestEventDialog({ source, onSent, onClose }: TestEventDialogProps) {
  const account = useAccount();
  const sample = useResource(`sample ${source.name}`, (signal) =>
    account.webhooks.sample(source.name, {}, { signal }),
  );
  return (
    <Dialog title={`Test event from ${source.name}`} onClose={onClose} isWide>
      <ResourceView of={sample}>
        {(value) => <TestEventForm source={source} sample={value} onSent={onSent} onClose={onClose} />}
      </ResourceView>
    </Dialog>
  );
}

interface Header {
  readonly name: string;
  readonly value: string;
}

function TestEventForm({
  source,
  sample,
  onSent,
  onClose,
}: TestEventDialogProps & { readonly sample: WebhookSample }) {
  const account = useAccount();
  const [entity, setEntity] = useState(sample.entity);
  const [type, setType] = useState(sample.type ?? "");
  // Null: the sample of the service, which names the entity and the type itself.
  const [payload, setPayload] = useState<string | null>(null);
  const [headers, setHeaders] = useState<readonly Header[]>([]);
  const [result, setResult] = useState<SampleResult | null>(null);
  const problem = payload === null ? null : jsonProblem(payload);
  const send = useAction(async () => {
    setResult(null);
    const given = headers.filter(({ name }) => name.trim() !== "");
    setResult(
      await account.webhooks.sendTest(source.name, {
        ...(entity === "" ? {} : { entity }),
        ...(type === "" || type === sample.type ? {} : { type }),
        ...(payload === null ? {} : { payload: JSON.parse(payload) as Record<string, unknown> }),
        ...(given.length === 0
          ? {}
          : { headers: Object.fromEntries(given.map(({ name, value }) => [name.trim(), value])) }),
      }),
    );
    onSent();
  });
  const preview = useResource(payload === null ? `sample ${source.name} ${entity} ${type}` : null, (signal) =>
    account.webhooks.sample(source.name, { entity, type: type === "" ? undefined : type }, { signal }),
  );
  const shown = payload ?? prettyJson((preview.value ?? sample).body);
  const isJson = sample.content_type === "application/json";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void send.run();
  };
  return (
    <form onSubmit={submit} className="stack">
      <div className="two-fields">
        <Field
          label="Entity"
          hint={
            payload === null
              ? `Selects the instance of ${source.agent}.`
              : "Must agree with the payload. Empty: the payload names it."
          }
        >
          <input
            required={payload === null}
            maxLength={512}
            value={entity}
            onChange={({ target }) => setEntity(target.value)}
          />
        </Field>
        <Field label="Event type">
          <input
            maxLength={256}
            value={type}
            placeholder={sample.type ?? "none"}
            onChange={({ target }) => setType(target.value)}
          />
        </Field>
      </div>
      <div className="stack-tight">
        <Field label="Payload" hint={problem ?? hintOf(isJson, payload !== null)}>
          <textarea
            className="mono"
            rows={12}
            spellCheck={false}
            readOnly={!isJson}
            aria-invalid={problem !== null}
            value={shown}
            onChange={({ target }) => setPayload(target.value)}
          />
        </Field>
        {payload !== null && (
          <div className="row">
            <Button size="small" onClick={() => setPayload(null)}>
              Use the sample
            </Button>
            <Button
              size="small"
              disabled={problem !== null}
              onClick={() => setPayload(JSON.stringify(JSON.parse(payload), null, 2))}
            >
              Format
            </Button>
          </div>
        )}
      </div>
      <EditRows
        legend="Headers"
        noun="header"
        rows={headers}
        blank={{ name: "", value: "" }}
        onChange={setHeaders}
      >
        {(header, change) => (
          <>
            <Field label="Name">
              <input
                value={header.name}
                placeholder="x-request-source"
                onChange={({ target }) => change({ name: target.value })}
              />
            </Field>
            <Field label="Value">
              <input value={header.value} onChange={({ target }) => change({ value: target.value })} />
            </Field>
          </>
        )}
      </EditRows>
      {send.error !== null && <ErrorNotice error={send.error} />}
      {result !== null && <TestResult result={result} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
        <Button kind="primary" type="submit" isBusy={send.isBusy} disabled={problem !== null}>
          {result === null ? "Send" : "Send again"}
        </Button>
      </div>
    </form>
  );
}

function hintOf(isJson: boolean, isEdited: boolean): string | undefined {
  if (!isJson) return "This source sends forms. Their fields follow the entity and the event type.";
  return isEdited ? undefined : "The sample of this source. Edit it to send your own.";
}
