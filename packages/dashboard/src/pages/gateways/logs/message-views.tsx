/** Shows the messages of a request or response body, or the body as JSON if its form is unknown. */
import type { ReactNode } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import { JsonView } from "../../../components/json-view.tsx";
import { Markdown } from "../../../components/markdown/markdown.tsx";
import { MessageImage } from "../../../components/markdown/message-image.tsx";
import type { AssembledResponse } from "./assemble-stream.ts";
import { type Message, type MessagePart, requestMessages, responseMessages } from "./message-parts.ts";

const MAX_SHOWN = 200_000;

export function RequestView({ json }: { readonly json: string }) {
  return <MessagesOrBody messages={requestMessages(json)} body={json} label="Request body" />;
}

export function ResponseView({
  stream,
  json,
}: {
  readonly stream: AssembledResponse | null;
  readonly json: string;
}) {
  if (stream === null)
    return <MessagesOrBody messages={responseMessages(json)} body={json} label="Response body" />;
  return (
    <>
      <Messages messages={streamMessages(stream)} />
      <p className="muted small">
        Assembled from {stream.events} events
        {stream.finishReason !== null && `; finish reason: ${stream.finishReason}`}.
      </p>
    </>
  );
}

function streamMessages({ reasoning, text, toolCalls }: AssembledResponse): Message[] {
  const parts: MessagePart[] = [
    ...(reasoning === "" ? [] : [{ kind: "reasoning", text: reasoning } as const]),
    ...(text === "" ? [] : [{ kind: "text", text } as const]),
    ...toolCalls.map(
      ({ name, arguments: input }) => ({ kind: "tool-call", name, input: parsed(input) }) as const,
    ),
  ];
  return parts.length === 0 ? [] : [{ role: "assistant", parts }];
}

function MessagesOrBody({
  messages,
  body,
  label,
}: {
  readonly messages: readonly Message[];
  readonly body: string;
  readonly label: string;
}) {
  if (messages.length > 0) return <Messages messages={messages} />;
  if (body === "") return <p className="muted">The body is empty.</p>;
  const value = body.length > MAX_SHOWN ? body : parsed(body);
  return typeof value === "object" && value !== null ? (
    <JsonView value={value} label={label} />
  ) : (
    <CodeBlock code={body.slice(0, MAX_SHOWN)} label={label} isWrapped />
  );
}

export function Messages({ messages }: { readonly messages: readonly Message[] }): ReactNode {
  return (
    <ol className="messages">
      {messages.map(({ role, parts }, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- stored messages do not change
        <li
          key={i}
          className={`message message-${role === "assistant" || role === "model" ? "assistant" : "other"}`}
        >
          <span className="message-role">{role}</span>
          {parts.map((part, n) => (
            // oxlint-disable-next-line react/no-array-index-key -- stored messages do not change
            <Part key={n} part={part} role={role} />
          ))}
        </li>
      ))}
    </ol>
  );
}

function Part({ part, role }: { readonly part: MessagePart; readonly role: string }): ReactNode {
  switch (part.kind) {
    case "text":
      return <TextPart text={part.text} isAnswer={role === "assistant" || role === "model"} />;
    case "reasoning":
      return (
        <details className="reasoning">
          <summary>Reasoning</summary>
          <Markdown text={part.text} />
        </details>
      );
    case "image":
      return <MessageImage address={part.address} text="" />;
    case "tool-call":
      return (
        <div className="tool-call">
          <span>
            <span className="muted">Tool call</span> <code>{part.name === "" ? "unnamed" : part.name}</code>
          </span>
          <Value value={part.input} label={`Arguments of ${part.name}`} />
        </div>
      );
    case "tool-result":
      return (
        <div className="tool-call">
          <span>
            <span className="muted">Tool result</span> {part.name !== "" && <code>{part.name}</code>}
          </span>
          <Value value={part.output} label={`Result of ${part.name}`} />
        </div>
      );
    case "other":
      return <JsonView value={part.value} label="Content" />;
  }
}

/** A text that is a JSON object or list is shown as one; every other text as markdown. */
function TextPart({ text, isAnswer }: { readonly text: string; readonly isAnswer: boolean }) {
  const value = /^\s*[[{]/.test(text) ? parsed(text) : text;
  if (typeof value === "object" && value !== null)
    return <JsonView value={value} label={isAnswer ? "Answer" : "Message"} />;
  return <Markdown text={text} />;
}

function Value({ value, label }: { readonly value: unknown; readonly label: string }) {
  if (value === undefined || value === null) return <span className="muted">none</span>;
  return typeof value === "object" ? (
    <JsonView value={value} label={label} canCopy={false} />
  ) : (
    <p className="plain-text">{typeof value === "string" ? value : JSON.stringify(value)}</p>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
