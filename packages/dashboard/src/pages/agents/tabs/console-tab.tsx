import type { AgentConnection } from "@signalbox/client";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Badge } from "../../../components/badge.tsx";
import { Button } from "../../../components/button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { duration } from "../../../format/number.ts";
import { client, read } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useAccountPaths, useHasPermission, useScope } from "../../../session/session.ts";
import type { AgentClass, CallableMethod } from "../agent.ts";
import { ArgumentFields } from "../console/argument-fields.tsx";
import { argumentsOf, parseArguments, typedOf } from "../console/arguments.ts";
import { addCall, type PastCall, useCallHistory } from "../console/call-history.ts";
import { type CallOutput, CallOutputView } from "../console/call-output.tsx";

/** Calls methods of the instance, like other clients. No connection is open before a call: a look at the page must not wake the instance. */
export function ConsoleTab({ agent, name }: { readonly agent: string; readonly name: string }) {
  const { api } = useAccountPaths();
  const path = api("agents");
  const methods = useResource(path, async (signal) => {
    const classes = await read<AgentClass[]>(path, signal);
    return classes.find((one) => one.name === agent)?.callable ?? [];
  });
  return (
    <ResourceView of={methods}>
      {(all) =>
        all.length === 0 ? (
          <EmptyState title="No callable methods">
            <p>
              To call a method here or from clients, mark it with <code>@callable()</code> or list it in{" "}
              <code>static callable</code> of the class.
            </p>
          </EmptyState>
        ) : (
          <Console agent={agent} name={name} methods={all} />
        )
      }
    </ResourceView>
  );
}

interface ConsoleProps {
  readonly agent: string;
  readonly name: string;
  readonly methods: readonly CallableMethod[];
}

function Console({ agent, name, methods }: ConsoleProps) {
  const { accountId } = useScope();
  const canEdit = useHasPermission("agents.edit");
  const target = { agent, name, account: accountId };
  const [methodName, setMethodName] = useState(methods[0]?.name ?? "");
  const [isJson, setJson] = useState(false);
  const [json, setJsonText] = useState("[]");
  const [typed, setTyped] = useState<readonly string[]>([]);
  const [output, setOutput] = useState<CallOutput | null>(null);
  const method = methods.find((one) => one.name === methodName);
  const parameters = method?.parameters ?? null;
  const hasFields = parameters !== null && !isJson;
  const history = useCallHistory(agent);
  const leaving = useLeaving();
  const run = useAction(async () => {
    // Also cleared if the arguments are wrong: an old result below an error looks like the result of the failed call.
    setOutput(null);
    const args = hasFields ? argumentsOf(parameters, typed) : parseArguments(json);
    const isStream = method?.streaming === true;
    const startedAt = performance.now();
    const took = () => performance.now() - startedAt;
    const onPiece = (text: string) => {
      const piece = { atMs: took(), text };
      setOutput((before) => ({ isStream, tookMs: null, pieces: [...(before?.pieces ?? []), piece] }));
    };
    let hasFailed = true;
    try {
      if (isStream) await readStream(client.agent(target), methodName, args, leaving.current.signal, onPiece);
      else onPiece(show(await client.callAgent(target, methodName, args)));
      hasFailed = false;
      setOutput((before) => ({ isStream, pieces: before?.pieces ?? [], tookMs: took() }));
    } finally {
      addCall(agent, { method: methodName, args, tookMs: took(), hasFailed });
    }
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run.run();
  };
  const select = (next: string) => {
    setMethodName(next);
    setTyped([]);
  };
  const fill = (call: PastCall) => {
    const known = methods.find((one) => one.name === call.method);
    if (known === undefined) return;
    setMethodName(call.method);
    setJsonText(JSON.stringify(call.args));
    if (known.parameters !== null) setTyped(typedOf(known.parameters, call.args));
  };
  return (
    <div className="console">
      <section className="panel" aria-labelledby="console-title">
        <h2 id="console-title">Console</h2>
        <form onSubmit={submit} className="stack">
          <Field label="Method" hint={method?.description}>
            <select value={methodName} onChange={({ target }) => select(target.value)}>
              {methods.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.name}
                  {one.streaming ? " (streaming)" : ""}
                </option>
              ))}
            </select>
          </Field>
          {hasFields ? (
            <ArgumentFields parameters={parameters} typed={typed} onChange={setTyped} />
          ) : (
            <Field label="Arguments (JSON array)">
              <textarea
                value={json}
                spellCheck={false}
                rows={3}
                onChange={({ target }) => setJsonText(target.value)}
              />
            </Field>
          )}
          <div className="row">
            <Button type="submit" kind="primary" isBusy={run.isBusy} disabled={!canEdit}>
              Call
            </Button>
            {parameters !== null && (
              <Button kind="quiet" onClick={() => setJson(!isJson)}>
                {isJson ? "Use a field for each argument" : "Write the arguments as JSON"}
              </Button>
            )}
          </div>
        </form>
        {!canEdit && (
          <p className="notice notice-warn">Calling methods requires the agents.edit permission.</p>
        )}
        {run.error !== null && (
          <p className="notice notice-bad" role="alert">
            {run.error.message}
          </p>
        )}
        {output !== null && <CallOutputView output={output} />}
      </section>
      {history.length > 0 && <History calls={history} onSelect={fill} />}
    </div>
  );
}

function History({
  calls,
  onSelect,
}: {
  readonly calls: readonly PastCall[];
  readonly onSelect: (call: PastCall) => void;
}) {
  return (
    <section className="panel" aria-labelledby="history-title">
      <h2 id="history-title">Earlier calls</h2>
      <ul className="past-calls">
        {calls.map((call) => (
          <li key={call.id}>
            <button type="button" onClick={() => onSelect(call)}>
              <code>
                {call.method}({call.args.map((arg) => JSON.stringify(arg)).join(", ")})
              </code>
              <span className="muted small nowrap">
                {call.hasFailed && <Badge tone="bad">failed</Badge>} {duration(call.tookMs)}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Aborts when the user leaves the page. */
function useLeaving() {
  const leaving = useRef(new AbortController());
  useEffect(() => {
    leaving.current = new AbortController();
    return () => leaving.current.abort();
  }, []);
  return leaving;
}

/** A streaming method needs a connection. It is closed after the last chunk, or when the user leaves the page. Each piece is a line. */
async function readStream(
  connection: AgentConnection,
  method: string,
  args: unknown[],
  leaving: AbortSignal,
  onChunk: (text: string) => void,
): Promise<void> {
  connection.open();
  leaving.addEventListener("abort", () => connection.close(), { once: true });
  try {
    const chunks = connection.stream(method, args);
    for await (const chunk of chunks) onChunk(JSON.stringify(chunk) ?? "undefined");
    const result: unknown = await chunks.result;
    if (result !== undefined && result !== null) onChunk(JSON.stringify(result));
  } finally {
    connection.close();
  }
}

function show(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "undefined";
}
