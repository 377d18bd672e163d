/** The public package's hook as an application uses it; host, name and token come from the page's address. */
import { useAgent } from "agents/react";
import { createElement as h, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);

function Counter() {
  const [state, setState] = useState(null);
  const [result, setResult] = useState("");
  const agent = useAgent({
    agent: "counter",
    name: query.get("name"),
    host: query.get("host"),
    query: { token: query.get("token") },
    onStateUpdate: (next) => setState(next),
  });
  const call = async () => setResult(String(await agent.call("increment", [2])));
  return h(
    "main",
    null,
    h("output", { id: "state" }, JSON.stringify(state)),
    h("output", { id: "result" }, result),
    h("button", { id: "call", onClick: () => void call() }, "call"),
    h("button", { id: "set", onClick: () => agent.setState({ count: 50 }) }, "set"),
  );
}

createRoot(document.querySelector("#root")).render(h(StrictMode, null, h(Counter)));
