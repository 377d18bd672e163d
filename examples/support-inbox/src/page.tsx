/** The inbox, live: the state of one agent, sent again after every change. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "@signalbox/client/react";
import type { Inbox, Ticket } from "../agents.ts";
import "./page.css";

const MAILBOX = "acme";

function Page() {
  const { state, status } = useAgent<Inbox>({ agent: "Inbox", name: MAILBOX });
  return (
    <main>
      <header>
        <h1>Inbox of {MAILBOX}</h1>
        <p className="status" data-status={status} role="status">
          {status === "open" ? `live, ${state?.tickets.length} tickets` : "connecting"}
        </p>
      </header>
      <ul>
        {state?.tickets.map((ticket) => (
          <TicketCard key={ticket.id} {...ticket} />
        ))}
      </ul>
    </main>
  );
}

function TicketCard({ from, subject, status, draft }: Ticket) {
  return (
    <li aria-label={subject}>
      <h2>{subject}</h2>
      <span className="badge" data-status={status}>
        {status}
      </span>
      <p className="from">{from}</p>
      <blockquote>{draft ?? "The model writes a draft…"}</blockquote>
    </li>
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
