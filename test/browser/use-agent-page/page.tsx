/** A page with one `useAgent`, and buttons for everything a test wants to happen to it. The server's address is in the query. */
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
    // A new function each time: it must be the newest one that hears, without a reconnect.
    onStateUpdate: (state, source) => log.push(`round ${round}: ${source} ${state.count}`),
    onStateError: (message) => log.push(`refused: ${message}`),
    onStatus: (status) => log.push(status),
  });
  const [answer, setAnswer] = useState("");
  return (
    <section>
      <p id="status">{agent.status}</p>
      <p id="count">{agent.state?.count ?? "unknown"}</p>
      <p id="answer">{answer}</p>
      <button id="add" onClick={() => void agent.stub.increment(1).then((sum) => setAnswer(String(sum)))}>
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
