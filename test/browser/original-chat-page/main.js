/** Uses the chat hook of the public package as an application does. The host and name are query parameters of the page. */
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";
import { createElement as h, Suspense, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);

function Chat() {
  const [text, setText] = useState("");
  const agent = useAgent({
    agent: "chat",
    name: query.get("name"),
    host: query.get("host"),
    minReconnectionDelay: 50,
    maxReconnectionDelay: 200,
  });
  const chat = useAgentChat({
    agent,
    onToolCall: async ({ toolCall, addToolOutput }) => {
      if (toolCall.toolName === "place")
        addToolOutput({ toolCallId: toolCall.toolCallId, output: "at the desk" });
    },
  });
  const send = () => void chat.sendMessage({ role: "user", parts: [{ type: "text", text }] });
  return h(
    "main",
    null,
    h("input", { id: "text", value: text, onChange: (event) => setText(event.target.value) }),
    h("button", { id: "send", onClick: send }, "send"),
    h("button", { id: "stop", onClick: () => void chat.stop() }, "stop"),
    h("output", { id: "status" }, chat.status),
    h("output", { id: "error" }, chat.error?.message ?? ""),
    chat.messages.map((message) =>
      h(
        "p",
        { key: message.id, className: message.role },
        message.parts.map((part, index) => h(Part, { key: index, part, chat })),
      ),
    ),
  );
}

function Part({ part, chat }) {
  if (part.type === "text") return part.text;
  if (!part.type.startsWith("tool-")) return null;
  if (part.state !== "approval-requested")
    return h("i", null, `[${part.type} ${part.state} ${part.output ?? ""}]`);
  const answer = (approved) => () => chat.addToolApprovalResponse({ id: part.approval.id, approved });
  return h(
    "span",
    null,
    h("button", { id: "approve", onClick: answer(true) }, "approve"),
    h("button", { id: "reject", onClick: answer(false) }, "reject"),
  );
}

createRoot(document.querySelector("#root")).render(h(Suspense, { fallback: "loading" }, h(Chat)));
