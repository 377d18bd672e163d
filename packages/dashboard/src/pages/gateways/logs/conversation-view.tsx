/** Bodies as people read them: who said what. Falls back to the JSON itself for shapes it does not know. */
import type { ReactNode } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import type { AssembledAnswer } from "./assemble-stream.ts";

interface Turn {
  readonly role: string;
  readonly text: string;
}

export function ConversationView({ json }: { readonly json: string }) {
  const turns = requestTurns(json);
  return turns.length === 0 ? <PlainBody text={json} label="Request body" /> : <Turns turns={turns} />;
}

export function AnswerView({
  stream,
  json,
}: {
  readonly stream: AssembledAnswer | null;
  readonly json: string;
}) {
  if (stream === null) {
    const turns = answerTurns(json);
    return turns.length === 0 ? <PlainBody text={json} label="Response body" /> : <Turns turns={turns} />;
  }
  return (
    <>
      <Turns
        turns={[
          ...(stream.reasoning === "" ? [] : [{ role: "reasoning", text: stream.reasoning }]),
          ...(stream.text === "" ? [] : [{ role: "assistant", text: stream.text }]),
          ...stream.toolCalls.map((call) => ({ role: `calls ${call.name}`, text: call.arguments })),
        ]}
      />
      <p className="muted small">
        Assembled from {stream.events} events
        {stream.finishReason !== null && `; finished with “${stream.finishReason}”`}.
      </p>
    </>
  );
}

function Turns({ turns }: { readonly turns: readonly Turn[] }): ReactNode {
  return (
    <ol className="turns">
      {turns.map(({ role, text }, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- a recorded conversation does not change
        <li
          key={i}
          className={`turn turn-${role === "assistant" || role === "model" ? "assistant" : "other"}`}
        >
          <span className="turn-role">{role}</span>
          <p>{text}</p>
        </li>
      ))}
    </ol>
  );
}

function PlainBody({ text, label }: { readonly text: string; readonly label: string }) {
  return text === "" ? (
    <p className="muted">Empty.</p>
  ) : (
    <CodeBlock code={text.slice(0, 200_000)} label={label} />
  );
}

function requestTurns(json: string): Turn[] {
  const body = parse(json);
  const system = body["system"] ?? body["instructions"];
  const input = body["messages"] ?? body["contents"] ?? body["input"];
  return [
    ...(system === undefined ? [] : [{ role: "system", text: textOf(system) }]),
    ...(typeof input === "string" ? [{ role: "user", text: input }] : turnsOf(input)),
  ];
}

function answerTurns(json: string): Turn[] {
  const body = parse(json);
  const choices = list(body["choices"]).map((choice) => choice["message"]);
  const candidates = list(body["candidates"]).map((candidate) => candidate["content"]);
  const found = turnsOf([...choices, ...candidates, ...list(body["output"])]);
  if (found.length > 0) return found;
  return body["role"] === "assistant" ? turnsOf([body]) : [];
}

function turnsOf(value: unknown): Turn[] {
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
