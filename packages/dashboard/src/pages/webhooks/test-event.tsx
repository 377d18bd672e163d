import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { ask } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import type { Source } from "./webhook.ts";

interface TestAnswer {
  readonly status: number;
  readonly body: string;
  readonly delivery_id: string;
}

/** A sample delivery, signed with the source's own secret, through the whole intake. */
export function TestEvent({ source, onSent }: { readonly source: Source; readonly onSent: () => void }) {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("webhooks.edit");
  const [entity, setEntity] = useState("acme/widgets");
  const [answer, setAnswer] = useState<TestAnswer | null>(null);
  const send = useAction(async () => {
    setAnswer(null);
    const { result } = await ask<TestAnswer>(api("webhooks", "sources", source.name, "test"), {
      method: "POST",
      body: { entity },
    });
    setAnswer(result);
    onSent();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void send.run();
  };
  return (
    <section className="panel" aria-labelledby="test-title">
      <h2 id="test-title">Try it</h2>
      <p className="muted">
        Signs a sample of what {source.name} sends and takes it in as if it had come over the network: it is
        verified, routed and handled like any other.
      </p>
      <form onSubmit={submit} className="stack">
        <Field label="Entity" hint="Whom the event is about: a repository, a customer, a device.">
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
          Without a secret there is nothing to sign with: set {source.secret_variable} first.
        </p>
      )}
      {send.error !== null && <ErrorNotice error={send.error} />}
      {answer !== null && (
        <p
          className={`notice ${answer.status < 300 ? "notice-good" : "notice-bad"}`}
          role="status"
          data-testid="test-answer"
        >
          <span>
            Answered <strong>{answer.status}</strong> <code>{answer.body}</code>
          </span>
        </p>
      )}
    </section>
  );
}
