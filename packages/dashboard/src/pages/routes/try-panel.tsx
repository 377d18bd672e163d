import type { RoutesApi, RouteTrialResult } from "@signalbox/client";
import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { useAction } from "../../http/use-action.ts";
import type { Elements } from "./route-elements.ts";

interface TryPanelProps {
  readonly api: RoutesApi;
  readonly routeId: string;
  readonly elements: Elements;
  /** The version that has these elements; null if they are not saved. */
  readonly versionId: string | null;
  /** Null until the graph that is shown was tried. */
  readonly result: RouteTrialResult | null;
  readonly onResult: (result: RouteTrialResult) => void;
}

/** Shows the way that a sample request would take through the graph of the editor, saved or not. No model is called. */
export function TryPanel({ api, routeId, elements, versionId, result, onResult }: TryPanelProps) {
  const [metadata, setMetadata] = useState("{}");
  const [body, setBody] = useState("{}");
  const [session, setSession] = useState("");
  const [failing, setFailing] = useState<ReadonlySet<string>>(new Set());
  const models = elements.filter(({ type }) => type === "model").map(({ id }) => id);
  const wrong = objectError("Metadata", metadata) ?? objectError("Body", body);
  const attempt = useAction(async () => {
    const trial = {
      // A trial of other elements needs the permission to edit.
      ...(versionId === null ? { elements } : { version_id: versionId }),
      metadata: JSON.parse(metadata) as Record<string, unknown>,
      body: JSON.parse(body) as unknown,
      session_id: session === "" ? undefined : session,
      failing: models.filter((id) => failing.has(id)),
    };
    onResult(await api.try(routeId, trial));
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt.run();
  };
  const toggle = (id: string) => {
    const next = new Set(failing);
    if (!next.delete(id)) next.add(id);
    setFailing(next);
  };
  return (
    <section className="panel" aria-labelledby="try-title">
      <h2 id="try-title">Try it</h2>
      <p className="muted">
        Shows the way that a request takes through the graph above, also before it is saved. No model is
        called, and limits do not count.
      </p>
      <form onSubmit={submit} className="stack">
        <div className="form-grid">
          <Field label="Metadata (JSON)">
            <textarea
              value={metadata}
              spellCheck={false}
              onChange={({ target }) => setMetadata(target.value)}
            />
          </Field>
          <Field label="Body (JSON)">
            <textarea value={body} spellCheck={false} onChange={({ target }) => setBody(target.value)} />
          </Field>
          <Field label="Session (optional)" hint="Calls of one session take the same share.">
            <input value={session} onChange={({ target }) => setSession(target.value)} />
          </Field>
          <fieldset className="fieldset">
            <legend className="field-label">Models that fail</legend>
            <div className="checks">
              {models.map((id) => (
                <label key={id} className="check">
                  <input type="checkbox" checked={failing.has(id)} onChange={() => toggle(id)} />
                  <span>{id}</span>
                </label>
              ))}
            </div>
          </fieldset>
        </div>
        {wrong !== null && <p className="notice notice-bad">{wrong}</p>}
        {attempt.error !== null && <ErrorNotice error={attempt.error} />}
        <div className="row">
          <Button type="submit" kind="primary" isBusy={attempt.isBusy} disabled={wrong !== null}>
            Try
          </Button>
        </div>
      </form>
      <div role="status">{result !== null && <WayTaken result={result} />}</div>
    </section>
  );
}

function WayTaken({ result: { way, provider, model, error } }: { readonly result: RouteTrialResult }) {
  return (
    <div className="stack" data-testid="way">
      <ol className="route-way">
        {way.map(({ id, type, output }) => (
          <li key={id}>
            <strong>{id}</strong> <span className="muted">{type}</span> {output !== null && <>→ {output}</>}
          </li>
        ))}
      </ol>
      <p className={`notice ${error === null ? "notice-good" : "notice-bad"}`}>
        {error ?? `Calls ${provider ?? ""}/${model ?? ""}`}
      </p>
    </div>
  );
}

function objectError(name: string, text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? null
      : `${name} must be a JSON object.`;
  } catch {
    return `${name} is not valid JSON.`;
  }
}
