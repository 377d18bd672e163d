/** A page with one `useAgent` hook and buttons for the tests. The server URL is a query parameter. */
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "@signalbox/client/react";

interface Counter {
  state: { count: number };
  increment(by: number): Promise<number>;
}

const query = new URLSearchParams(location.search);
const log: string[] = [];
Object.assign(globalThis, { log });

function Panel({ name, isEnabled, round }: { name: string; isEnabled: boolean; round: number }) {
  const agent = useAgent<Counter>({
    agent: "Counter",
    name,
    url: query.get("server") ?? location.origin,
    enabled: isEnabled,
    backoff: { baseDelayMs: Number(query.get("delay") ?? 20), maxDelayMs: Number(query.get("delay") ?? 100) },
    ...(query.has("token") ? { token: query.get("token") ?? "" } : {}),
    // A new function on each render: the hook must call the latest one without reconnecting.
    onStateUpdate: (state, source) => log.push(`round ${round}: ${source} ${state.count}`),
    onStateError: (message) => log.push(`rejected: ${message}`),
    onStatus: (status) => log.push(status),
  });
  const [result, setResult] = useState("");
  return (
    <section>
      <p id="status">{agent.status}</p>
      <p id="count">{agent.state?.count ?? "unknown"}</p>
      <p id="result">{result}</p>
      <button id="add" onClick={() => void agent.stub.increment(1).then((sum) => setResult(String(sum)))}>
        add
      </button>
      <button id="set" onClick={() => agent.setState({ count: 100 })}>
        set
      </button>
    </section>
  );
}

function Page() {
  const [round, setRound] = useState(0);
  const [name, setName] = useState(query.get("name") ?? "one");
  const [isEnabled, setEnabled] = useState(true);
  const [isMounted, setMounted] = useState(true);
  return (
    <main>
      <button id="again" onClick={() => setRound(round + 1)}>
        render again
      </button>
      <button id="other" onClick={() => setName("two")}>
        other instance
      </button>
      <button id="enabled" onClick={() => setEnabled(!isEnabled)}>
        enabled
      </button>
      <button id="mounted" onClick={() => setMounted(!isMounted)}>
        mounted
      </button>
      <p id="round">{round}</p>
      {isMounted && <Panel name={name} isEnabled={isEnabled} round={round} />}
    </main>
  );
}

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Page />
    </StrictMode>,
  );
}
