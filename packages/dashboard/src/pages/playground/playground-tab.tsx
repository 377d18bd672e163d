/** Calls a model through the gateway, with the code that does the same beside it. Calls are ordinary calls: they are limited, metered and logged. */
import { type FormEvent, type KeyboardEvent, useId, useState } from "react";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { read } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths, useScope, useTrafficOrigin } from "../../session/session.ts";
import type { Gateway } from "../gateways/gateway.ts";
import { readBody } from "../gateways/logs/body-panel.tsx";
import type { Call } from "../gateways/logs/call.ts";
import { SNIPPETS, type SnippetName } from "../gateways/settings/snippets.ts";
import { formOfCall } from "./form-of-call.ts";
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
import type { Outcome } from "./run-call.ts";
import { useModels } from "./use-models.ts";
import { type Run, useRuns } from "./use-runs.ts";

/** More answers beside each other are too narrow to read. */
const MAX_MODELS = 3;

/** A stored call (`?call=`) fills the form. */
export function PlaygroundTab({ gateway }: { readonly gateway: Gateway }) {
  const { api } = useAccountPaths();
  const [model] = useQueryValue("model", EMPTY_FORM.model);
  const [callId] = useQueryValue("call");
  const path = api("ai-gateway", "gateways", gateway.id, "logs", callId);
  const stored = useResource(callId === "" ? null : path, async (signal) => {
    const [call, body] = await Promise.all([read<Call>(path, signal), readBody(`${path}/request`, signal)]);
    return formOfCall(call.provider, call.model, body?.text ?? "");
  });
  if (callId === "") return <Playground gateway={gateway} initial={{ ...EMPTY_FORM, model }} />;
  return (
    <ResourceView of={stored}>
      {(initial) => <Playground key={callId} gateway={gateway} initial={initial} />}
    </ResourceView>
  );
}

interface PlaygroundProps {
  readonly gateway: Gateway;
  readonly initial: Form;
}

function Playground({ gateway, initial }: PlaygroundProps) {
  const { accountId } = useScope();
  const origin = useTrafficOrigin();
  const [form, setForm] = useState<Form>(initial);
  /** Models beside the first one. */
  const [others, setOthers] = useState<readonly string[]>([]);
  const [token, setToken] = usePlaygroundToken(gateway.id);
  const [providerKey, setProviderKey] = useState("");
  const [snippet, setSnippet] = useState<SnippetName>("curl");
  const { runs, isRunning, start, stop, clear } = useRuns();
  const target = { origin, accountId, gatewayId: gateway.id };
  const url = compatUrl(target);
  const models = useModels(url, token, gateway.authentication);
  const isReachable = origin === location.origin;

  const run = () => {
    if (!isReachable) return;
    const asked = [form.model, ...others].map((name) => name.trim()).filter((name) => name !== "");
    start(
      asked.map((name) => ({
        model: name,
        call: {
          url: `${url}/chat/completions`,
          body: toChatBody({ ...form, model: name }),
          headers: toGatewayHeaders(form),
          token,
          providerKey,
        },
      })),
    );
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    run();
  };
  const sendByKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || (!event.ctrlKey && !event.metaKey)) return;
    event.preventDefault();
    run();
  };
  const reply = (answer: string) => {
    setForm((before) => ({
      ...before,
      messages: [...before.messages, { role: "assistant", content: answer }, { role: "user", content: "" }],
    }));
    clear();
  };
  return (
    <div className={`playground ${others.length > 0 ? "playground-compare" : ""}`}>
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
            others={others}
            maxModels={MAX_MODELS}
            onOthers={setOthers}
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
            {isRunning && <Button onClick={stop}>Stop</Button>}
            <span className="muted small">
              Ctrl + Enter sends. {others.length > 0 ? "Each call" : "A call"} is metered and logged like any
              other.
            </span>
          </div>
        </section>
      </form>
      <div className="playground-answers">
        {(runs.length === 0 ? [NOT_RUN] : runs).map((one, i) => (
          <AnswerPanel
            // oxlint-disable-next-line react/no-array-index-key -- the same model may be asked twice
            key={i}
            run={one}
            title={runs.length > 1 ? one.model : "Answer"}
            gatewayId={gateway.id}
            onReply={reply}
          />
        ))}
        <span className="visually-hidden" role="status">
          {isRunning ? "The call is running" : runs.length > 0 ? "The call has ended" : ""}
        </span>
      </div>
      <div className="playground-code">
        <section className="panel" aria-labelledby="playground-code">
          <h2 id="playground-code">Code</h2>
          <Tabs label="Client" tabs={SNIPPETS} current={snippet} onChange={setSnippet}>
            <CodeBlock
              label="Code of the request"
              isWrapped
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

const NOT_RUN: Run = { model: "", isRunning: false, outcome: null, failure: null };

interface AnswerPanelProps {
  readonly run: Run;
  readonly title: string;
  readonly gatewayId: string;
  readonly onReply: (answer: string) => void;
}

function AnswerPanel({ run, title, gatewayId, onReply }: AnswerPanelProps) {
  const { isRunning, outcome, failure } = run;
  const id = useId();
  const answer = outcome?.isComplete === true && outcome.error === null ? answerText(outcome) : "";
  return (
    <section className="panel" aria-labelledby={id} aria-busy={isRunning}>
      <div className="row spread">
        <h2 id={id}>{title}</h2>
        {answer !== "" && (
          <Button size="small" onClick={() => onReply(answer)}>
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
      {outcome !== null && <PlaygroundAnswer gatewayId={gatewayId} outcome={outcome} isRunning={isRunning} />}
    </section>
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
