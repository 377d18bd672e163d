/** Shows the messages of a request or response body, or the JSON if the format is unknown. */
import type { ReactNode } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import type { AssembledResponse } from "./assemble-stream.ts";

interface Message {
  readonly role: string;
  readonly text: string;
}

export function RequestView({ json }: { readonly json: string }) {
  const messages = requestMessages(json);
  return messages.length === 0 ? (
    <PlainBody text={json} label="Request body" />
  ) : (
    <Messages messages={messages} />
  );
}

export function ResponseView({
  stream,
  json,
}: {
  readonly stream: AssembledResponse | null;
  readonly json: string;
}) {
  if (stream === null) {
    const messages = responseMessages(json);
    return messages.length === 0 ? (
      <PlainBody text={json} label="Response body" />
    ) : (
      <Messages messages={messages} />
    );
  }
  return (
    <>
      <Messages
        messages={[
          ...(stream.reasoning === "" ? [] : [{ role: "reasoning", text: stream.reasoning }]),
          ...(stream.text === "" ? [] : [{ role: "assistant", text: stream.text }]),
          ...stream.toolCalls.map((call) => ({ role: `tool call: ${call.name}`, text: call.arguments })),
        ]}
      />
      <p className="muted small">
        Assembled from {stream.events} events
        {stream.finishReason !== null && `; finish reason: ${stream.finishReason}`}.
      </p>
    </>
  );
}

function Messages({ messages }: { readonly messages: readonly Message[] }): ReactNode {
  return (
    <ol className="messages">
      {messages.map(({ role, text }, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- stored messages do not change
        <li
          key={i}
          className={`message message-${role === "assistant" || role === "model" ? "assistant" : "other"}`}
        >
          <span className="message-role">{role}</span>
          <p>{text}</p>
        </li>
      ))}
    </ol>
  );
}

function PlainBody({ text, label }: { readonly text: string; readonly label: string }) {
  return text === "" ? (
    <p className="muted">The body is empty.</p>
  ) : (
    <CodeBlock code={text.slice(0, 200_000)} label={label} />
  );
}

function requestMessages(json: string): Message[] {
  const body = parse(json);
  const system = body["system"] ?? body["instructions"];
  const input = body["messages"] ?? body["contents"] ?? body["input"];
  return [
    ...(system === undefined ? [] : [{ role: "system", text: textOf(system) }]),
    ...(typeof input === "string" ? [{ role: "user", text: input }] : messagesOf(input)),
  ];
}

function responseMessages(json: string): Message[] {
  const body = parse(json);
  const choices = list(body["choices"]).map((choice) => choice["message"]);
  const candidates = list(body["candidates"]).map((candidate) => candidate["content"]);
  const found = messagesOf([...choices, ...candidates, ...list(body["output"])]);
  if (found.length > 0) return found;
  return body["role"] === "assistant" ? messagesOf([body]) : [];
}

function messagesOf(value: unknown): Message[] {
  return list(value)
    .map((message) => ({
      role: roleOf(message["role"] ?? message["type"]),
      text:
        textOf(message["content"] ?? message["parts"] ?? message["text"]) + toolText(message["tool_calls"]),
    }))
    .filter(({ text }) => text !== "");
}

function roleOf(value: unknown): string {
  return typeof value === "string" ? value : "assistant";
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map((part) => (typeof part["text"] === "string" ? part["text"] : JSON.stringify(part)))
    .join("\n");
}

function toolText(calls: unknown): string {
  return list(calls)
    .map((call) => JSON.stringify(call["function"] ?? call))
    .join("\n");
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value)
    ? value.filter((item): item is Record<string, unknown> => typeof item === "object" && item !== null)
    : [];
}

function parse(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
