/** Questions and answers, with the passages that an answer comes from. */
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "@signalbox/client/react";
import type { Handbook, Source } from "../agents.ts";
import "./page.css";

function Page() {
  const { state, status, stream } = useAgent<Handbook>({ agent: "Handbook", name: "company" });
  const [question, setQuestion] = useState("");
  const [answer, setAnswer] = useState("");
  const [sources, setSources] = useState<readonly Source[]>([]);
  const [error, setError] = useState("");

  async function ask(form: FormData) {
    const asked = form.get("question") as string;
    setQuestion(asked);
    setAnswer("");
    setSources([]);
    setError("");
    try {
      for await (const piece of stream("ask", [asked])) {
        const part = piece as { sources?: readonly Source[]; text?: string };
        if (part.sources !== undefined) setSources(part.sources);
        else setAnswer((text) => text + part.text);
      }
    } catch (failure) {
      setError((failure as Error).message);
    }
  }

  return (
    <main>
      <header>
        <h1>Ask the handbook</h1>
        <p className="status" data-status={status} role="status">
          {status === "open" ? `${state?.documents} documents, ${state?.passages} passages` : "connecting"}
        </p>
      </header>
      <form action={(form) => void ask(form)}>
        <input
          name="question"
          aria-label="Question"
          placeholder="How many days of holiday do I have?"
          autoComplete="off"
          required
        />
        <button disabled={status !== "open"}>Ask</button>
      </form>
      {question !== "" && (
        <section aria-label="Answer">
          <h2>{question}</h2>
          <p>{answer}</p>
          {error !== "" && <p role="alert">{error}</p>}
        </section>
      )}
      {sources.length > 0 && (
        <ol aria-label="Sources">
          {sources.map(({ file, heading, text }) => (
            <li key={`${file} ${heading}`}>
              <b>{heading}</b> <small>{file}</small>
              <p>{text}</p>
            </li>
          ))}
        </ol>
      )}
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
