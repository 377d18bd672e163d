import type { AgentConnection } from "@signalbox/client";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { CodeBlock } from "../../../components/code-block.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { duration } from "../../../format/number.ts";
import { client, read } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useAccountPaths, useHasPermission, useScope } from "../../../session/session.ts";
import type { AgentClass, CallableMethod } from "../agent.ts";

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
  const [args, setArgs] = useState("[]");
  const [output, setOutput] = useState<string | null>(null);
  const [tookMs, setTookMs] = useState<number | null>(null);
  const method = methods.find((one) => one.name === methodName);
  const leaving = useLeaving();
  const run = useAction(async () => {
    // Also cleared if the arguments are wrong: an old result below an error looks like the result of the failed call.
    setOutput(null);
    setTookMs(null);
    const parsed = parseArguments(args);
    const startedAt = performance.now();
    if (method?.streaming === true)
      await readStream(client.agent(target), methodName, parsed, leaving.current.signal, (text) =>
        setOutput((before) => `${before ?? ""}${text}\n`),
      );
    else setOutput(show(await client.callAgent(target, methodName, parsed)));
    setTookMs(performance.now() - startedAt);
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run.run();
  };
  return (
    <section className="panel" aria-labelledby="console-title">
      <h2 id="console-title">Console</h2>
      <form onSubmit={submit} className="stack">
        <Field label="Method" hint={method?.description}>
          <select value={methodName} onChange={({ target }) => setMethodName(target.value)}>
            {methods.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}
                {one.streaming ? " (streaming)" : ""}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Arguments (JSON array)">
          <textarea
            value={args}
            spellCheck={false}
            rows={3}
            onChange={({ target }) => setArgs(target.value)}
          />
        </Field>
        <div>
          <Button type="submit" kind="primary" isBusy={run.isBusy} disabled={!canEdit}>
            Call
          </Button>
        </div>
      </form>
      {!canEdit && <p className="notice notice-warn">Calling methods requires the agents.edit permission.</p>}
      {run.error !== null && (
        <p className="notice notice-bad" role="alert">
          {run.error.message}
        </p>
      )}
      {output !== null && (
        <div role="status" data-testid="call-result">
          <CodeBlock label="Result" code={output} />
        </div>
      )}
      {tookMs !== null && (
        <p className="muted small">
          {output === null ? "No result, " : ""}
          {duration(tookMs)}
        </p>
      )}
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

/** A streaming method needs a connection. It is closed after the last chunk, or when the user leaves the page. */
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
    for await (const chunk of chunks) onChunk(show(chunk));
    const result: unknown = await chunks.result;
    if (result !== undefined && result !== null) onChunk(show(result));
  } finally {
    connection.close();
  }
}

function parseArguments(text: string): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "[]" : text);
  } catch (error) {
    throw new Error(`The arguments are not valid JSON: ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
  if (!Array.isArray(value)) throw new Error('The arguments must be a JSON array, for example ["push", 10].');
  return value;
}

function show(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "undefined";
}
