/** Uses the hook of the public package as an application does. The host, name and token are query parameters of the page. */
import { useAgent } from "agents/react";
import { createElement as h, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);

function Counter() {
  const [state, setState] = useState(null);
  const [result, setResult] = useState("");
  const [refusal, setRefusal] = useState("");
  const [identity, setIdentity] = useState("");
  const agent = useAgent({
    agent: "counter",
    name: query.get("name"),
    host: query.get("host"),
    query: { token: query.get("token") },
    minReconnectionDelay: 50,
    maxReconnectionDelay: 100,
    onStateUpdate: (next) => setState(next),
    onStateUpdateError: (error) => setRefusal(error),
    onIdentity: (name, agentName) => setIdentity(`${agentName}/${name}`),
  });
  const call = async () => setResult(String(await agent.call("increment", [2])));
  const stream = async () => {
    const chunks = [];
    const done = await agent.call("stream", [3], { stream: { onChunk: (chunk) => chunks.push(chunk) } });
    setResult([chunks.join(), done].join(" "));
  };
  const fail = () => agent.stub.syncFail().catch((error) => setResult(error.message));
  return h(
    "main",
    null,
    h("output", { id: "state" }, JSON.stringify(state)),
    h("output", { id: "result" }, result),
    h("output", { id: "refusal" }, refusal),
    h("output", { id: "identity" }, identity),
    h("button", { id: "call", onClick: () => void call() }, "call"),
    h("button", { id: "stream", onClick: () => void stream() }, "stream"),
    h("button", { id: "fail", onClick: () => void fail() }, "fail"),
    h("button", { id: "set", onClick: () => agent.setState({ count: 50 }) }, "set"),
  );
}

createRoot(document.querySelector("#root")).render(h(StrictMode, null, h(Counter)));
