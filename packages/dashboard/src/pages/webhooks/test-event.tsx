import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { request } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import type { Source } from "./webhook.ts";

interface TestResponse {
  readonly status: number;
  readonly body: string;
  readonly delivery_id: string;
}

/** Sends a sample delivery, signed with the secret of the source. The service processes it like any other delivery. */
export function TestEvent({ source, onSent }: { readonly source: Source; readonly onSent: () => void }) {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("webhooks.edit");
  const [entity, setEntity] = useState("acme/widgets");
  const [response, setResponse] = useState<TestResponse | null>(null);
  const send = useAction(async () => {
    setResponse(null);
    const { result } = await request<TestResponse>(api("webhooks", "sources", source.name, "test"), {
      method: "POST",
      body: { entity },
    });
    setResponse(result);
    onSent();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void send.run();
  };
  return (
    <section className="panel" aria-labelledby="test-title">
      <h2 id="test-title">Send a test event</h2>
      <p className="muted">
        Sends a sample event, signed with the secret of this source. The event is verified, routed and
        processed like any other delivery.
      </p>
      <form onSubmit={submit} className="stack">
        <Field label="Entity" hint="The repository, customer or device that the event is about.">
          <input required maxLength={512} value={entity} onChange={({ target }) => setEntity(target.value)} />
        </Field>
        <div>
          <Button
            type="submit"
            kind="primary"
            isBusy={send.isBusy}
            disabled={!canEdit || source.secrets === 0}
          >
            Send test event
          </Button>
        </div>
      </form>
      {source.secrets === 0 && (
        <p className="notice notice-warn">
          Test events require a secret. Set {source.secret_variable} and restart the service.
        </p>
      )}
      {send.error !== null && <ErrorNotice error={send.error} />}
      {response !== null && (
        <p
          className={`notice ${response.status < 300 ? "notice-good" : "notice-bad"}`}
          role="status"
          data-testid="test-response"
        >
          <span>
            Response: <strong>{response.status}</strong> <code>{response.body}</code>
          </span>
        </p>
      )}
    </section>
  );
}
