/** Calls a model through the gateway, with the code that does the same beside it. Calls are ordinary calls: they are limited, metered and logged. */
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { useQueryValue } from "../../routing/location.ts";
import { useScope, useTrafficOrigin } from "../../session/session.ts";
import type { Gateway } from "../gateways/gateway.ts";
import { SNIPPETS, type SnippetName } from "../gateways/settings/snippets.ts";
import { PlaygroundAnswer } from "./playground-answer.tsx";
import { PlaygroundCredentials } from "./playground-credentials.tsx";
import { PlaygroundForm } from "./playground-form.tsx";
import {
  EMPTY_FORM,
  type PlaygroundForm as Form,
  toChatBody,
  toGatewayHeaders,
} from "./playground-request.ts";
import { compatUrl, playgroundSnippet } from "./playground-snippets.ts";
import { usePlaygroundToken } from "./playground-token.ts";
import { type Outcome, runCall } from "./run-call.ts";
import { useModels } from "./use-models.ts";

export function PlaygroundTab({ gateway }: { readonly gateway: Gateway }) {
  const { accountId } = useScope();
  const origin = useTrafficOrigin();
  const [model] = useQueryValue("model", EMPTY_FORM.model);
  const [form, setForm] = useState<Form>({ ...EMPTY_FORM, model });
  const [token, setToken] = usePlaygroundToken(gateway.id);
  const [providerKey, setProviderKey] = useState("");
  const [snippet, setSnippet] = useState<SnippetName>("curl");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [failure, setFailure] = useState<Error | null>(null);
  const running = useRef<AbortController | null>(null);
  const [isRunning, setRunning] = useState(false);
  useEffect(() => () => running.current?.abort(), []);
  const target = { origin, accountId, gatewayId: gateway.id };
  const url = compatUrl(target);
  const models = useModels(url, token, gateway.authentication);
  const isReachable = origin === location.origin;

  const run = async () => {
    if (running.current !== null || !isReachable) return;
    const abort = new AbortController();
    running.current = abort;
    setRunning(true);
    setOutcome(null);
    setFailure(null);
    try {
      const call = {
        url: `${url}/chat/completions`,
        body: toChatBody(form),
        headers: toGatewayHeaders(form),
        token,
        providerKey,
      };
      setOutcome(await runCall(call, abort.signal, setOutcome));
    } catch (error) {
      if (!abort.signal.aborted) setFailure(error instanceof Error ? error : new Error(String(error)));
    } finally {
      running.current = null;
      setRunning(false);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run();
  };
  const sendByKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || (!event.ctrlKey && !event.metaKey)) return;
    event.preventDefault();
    void run();
  };
  const answer = outcome?.isComplete === true && outcome.error === null ? answerText(outcome) : "";
  const reply = () => {
    setForm((before) => ({
      ...before,
      messages: [...before.messages, { role: "assistant", content: answer }, { role: "user", content: "" }],
    }));
    setOutcome(null);
  };
  return (
    <div className="playground">
      <form className="stack" onSubmit={submit} onKeyDown={sendByKey}>
        <PlaygroundCredentials
          gateway={gateway}
          token={token}
          onToken={setToken}
          providerKey={providerKey}
          onProviderKey={setProviderKey}
        />
        <section className="panel" aria-labelledby="playground-request">
          <h2 id="playground-request">Request</h2>
          <PlaygroundForm
            form={form}
            models={models}
            onChange={(part) => setForm((before) => ({ ...before, ...part }))}
          />
          {!isReachable && (
            <p className="notice notice-warn">
              Gateways answer at another address ({origin}), which this page may not call. Use the code.
            </p>
          )}
          <div className="row">
            <Button kind="primary" type="submit" isBusy={isRunning} disabled={!isReachable}>
              Send
            </Button>
            {isRunning && <Button onClick={() => running.current?.abort()}>Stop</Button>}
            <span className="muted small">
              Ctrl + Enter sends. A call is metered and logged like any other.
            </span>
          </div>
        </section>
      </form>
      <div className="stack">
        <section className="panel" aria-labelledby="playground-answer" aria-busy={isRunning}>
          <div className="row spread">
            <h2 id="playground-answer">Answer</h2>
            {answer !== "" && (
              <Button size="small" onClick={reply}>
                Reply
              </Button>
            )}
          </div>
          {failure !== null && <ErrorNotice error={failure} />}
          {outcome === null && failure === null && (
            <p className="muted">
              {isRunning ? "Waiting for the answer…" : "Send a request to see the answer here."}
            </p>
          )}
          {outcome !== null && (
            <PlaygroundAnswer gatewayId={gateway.id} outcome={outcome} isRunning={isRunning} />
          )}
          <span className="visually-hidden" role="status">
            {isRunning ? "The call is running" : outcome !== null ? "The call has ended" : ""}
          </span>
        </section>
        <section className="panel" aria-labelledby="playground-code">
          <h2 id="playground-code">Code</h2>
          <Tabs label="Client" tabs={SNIPPETS} current={snippet} onChange={setSnippet}>
            <CodeBlock
              label="Code of the request"
              code={playgroundSnippet(
                snippet,
                {
                  ...target,
                  hasToken: gateway.authentication || token !== "",
                  hasProviderKey: providerKey !== "",
                },
                form,
              )}
            />
          </Tabs>
        </section>
      </div>
    </div>
  );
}

function answerText({ stream, body }: Outcome): string {
  if (stream !== null) return stream.text;
  try {
    const parsed = JSON.parse(body) as { choices?: { message?: { content?: unknown } }[] };
    const content = parsed.choices?.[0]?.message?.content;
    return typeof content === "string" ? content : "";
  } catch {
    return "";
  }
}
