"use client";
/** A chat of the AI SDK; its route is `api/chat/route.ts`. */
import { useChat } from "@ai-sdk/react";
import { useState } from "react";

export function Chat() {
  const { messages, sendMessage, status, error } = useChat();
  const [text, setText] = useState("");
  const isBusy = status === "submitted" || status === "streaming";
  return (
    <section aria-label="Chat">
      <h2>Ask about it</h2>
      <ol>
        {messages.map(({ id, role, parts }) => (
          <li key={id} data-role={role}>
            {parts.map((part) => (part.type === "text" ? part.text : ""))}
          </li>
        ))}
      </ol>
      {error !== undefined && <p role="alert">There is no answer. Is Signalbox running?</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text });
          setText("");
        }}
      >
        <input
          aria-label="Message"
          placeholder="Which one is ahead?"
          value={text}
          onChange={(event) => setText(event.target.value)}
          required
        />
        <button disabled={isBusy}>Send</button>
      </form>
    </section>
  );
}
