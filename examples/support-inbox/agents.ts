/** One inbox per mailbox. Tickets arrive by webhook; a model drafts the answers; every open page sees both at once. */
import { Agent, callable, type WebhookEvent } from "signalbox";

export interface Ticket {
  readonly id: string;
  readonly from: string;
  readonly subject: string;
  readonly status: "new" | "drafted" | "sent";
  readonly draft: string | null;
}

export interface InboxState {
  /** Newest first. */
  readonly tickets: readonly Ticket[];
}

interface Arrived {
  readonly ticket_id: string;
  readonly from: string;
  readonly subject: string;
  readonly text: string;
}

type Environment = Record<string, string | undefined>;

/** Tickets in the state; the table has all of them. */
const SHOWN = 20;

export class Inbox extends Agent<Environment, InboxState> {
  override initialState: InboxState = { tickets: [] };

  override onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS ticket (id TEXT PRIMARY KEY, body TEXT NOT NULL, draft TEXT)`;
  }

  /**
   * Runs once per delivery, even if the sender repeats it. The ticket, the state and the queue item are one transaction; the model is called
   * later, so the sender does not wait for it.
   */
  async onEvent({ payload }: WebhookEvent) {
    const { ticket_id: id, from, subject, text } = payload as Arrived;
    this.sql`INSERT OR REPLACE INTO ticket (id, body) VALUES (${id}, ${text})`;
    this.#show({ id, from, subject, status: "new", draft: null });
    await this.queue("draftAnswer", { id }, { retry: { maxAttempts: 4, baseDelayMs: 1000 } });
  }

  /** Called by the queue. If the model fails, the call is repeated; at last it is a dead letter that can be replayed. */
  async draftAnswer({ id }: { id: string }) {
    const [row] = this.sql<{ body: string }>`SELECT body FROM ticket WHERE id = ${id}`;
    const ticket = this.state.tickets.find((one) => one.id === id);
    if (row === undefined || ticket === undefined) return;
    const draft = await this.#ask(`Answer this ticket in two sentences: ${row.body}`);
    this.sql`UPDATE ticket SET draft = ${draft} WHERE id = ${id}`;
    this.#show({ ...ticket, status: "drafted", draft });
  }

  @callable({ description: "Sends the draft of a ticket." })
  send(id: string): Ticket {
    const ticket = this.state.tickets.find((one) => one.id === id);
    if (ticket?.status !== "drafted") throw new Error(`ticket ${id} has no draft`);
    const sent: Ticket = { ...ticket, status: "sent" };
    this.#show(sent);
    return sent;
  }

  /** The gateway of this service: limits, cache, retries and the log of the call are its work. `echo` needs no key. */
  async #ask(prompt: string): Promise<string> {
    const response = await fetch(`${this.env["SIGNALBOX_URL"]}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "gw-aig-metadata": JSON.stringify({ mailbox: this.name }),
        ...(this.env["GATEWAY_TOKEN"] === undefined
          ? {}
          : { authorization: `Bearer ${this.env["GATEWAY_TOKEN"]}` }),
      },
      body: JSON.stringify({
        model: this.env["MODEL"] ?? "echo/echo",
        messages: [{ role: "user", content: prompt }],
      }),
    });
    if (!response.ok) throw new Error(`the model answered ${response.status}: ${await response.text()}`);
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    return choices[0]?.message.content ?? "";
  }

  #show(ticket: Ticket) {
    const others = this.state.tickets.filter(({ id }) => id !== ticket.id);
    this.setState({ tickets: [ticket, ...others].slice(0, SHOWN) });
  }
}
