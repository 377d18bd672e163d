/** A room, live: the state of one agent, and the answer that arrives piece by piece. */
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "@signalbox/client/react";
import type { Chat } from "../agents.ts";
import "./page.css";

/** The room is part of the address, so a link shares it. */
const ROOM = new URLSearchParams(location.search).get("room") ?? "kitchen";

function Page() {
  const { state, status, stream } = useAgent<Chat>({ agent: "Chat", name: ROOM });
  const [answer, setAnswer] = useState<string | null>(null);
  const [error, setError] = useState("");

  async function ask(form: FormData) {
    setError("");
    setAnswer("");
    try {
      for await (const piece of stream("ask", [form.get("question") as string]))
        setAnswer((text) => `${text}${String(piece)}`);
    } catch (failure) {
      setError((failure as Error).message);
    }
    setAnswer(null);
  }

  return (
    <main>
      <header>
        <h1>Chat in the {ROOM}</h1>
        <p className="status" data-status={status} role="status">
          {status === "open" ? "live" : "connecting"}
        </p>
      </header>
      <div className="columns">
        <section aria-label="Conversation">
          <ol>
            {state?.messages.map(({ role, content }, index) => (
              <li key={index} data-role={role}>
                {content}
              </li>
            ))}
            {answer !== null && (
              <li data-role="assistant" aria-busy="true">
                {answer || "…"}
              </li>
            )}
          </ol>
          {error !== "" && <p role="alert">{error}</p>}
          <form action={(form) => void ask(form)}>
            <input name="question" aria-label="Message" placeholder="buy milk" autoComplete="off" required />
            <button disabled={status !== "open" || answer !== null}>Send</button>
          </form>
        </section>
        <aside aria-label="Shopping list">
          <h2>Shopping list</h2>
          <ul>
            {state?.list.map((item) => (
              <li key={item}>{item}</li>
            ))}
          </ul>
        </aside>
      </div>
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
