/** Agents of the screenshots: one that works, and one that fails, waits and queues. */
import { callable, WebhookAgent, type WebhookEvent } from "signalbox";

export class TicketAgent extends WebhookAgent {
  override async onEvent(event: WebhookEvent) {
    if (event.type === "issues") throw new Error("issue tracker answered 503: try again later");
    if (event.type === "release") await new Promise((resolve) => setTimeout(resolve, 20_000));
    await this.queue("notify", { ticket: this.name, title: event.title }, { retry: { maxAttempts: 1 } });
    await this.queue(
      "sync",
      { ticket: this.name },
      { retry: { maxAttempts: 5, baseDelayMs: 600_000, maxDelayMs: 600_000 } },
    );
    await this.schedule("0 3 * * *", "tidy", { keep: 100 });
    return undefined;
  }

  async notify({ ticket }: { ticket: string }) {
    if (ticket.includes("billing"))
      throw new TypeError(`Cannot read properties of undefined (reading 'email') of ${ticket}`);
  }

  async sync({ ticket }: { ticket: string }) {
    if (ticket.includes("api")) throw new Error("the mirror cannot be reached");
  }

  tidy() {}

  @callable({ description: "Adds two numbers." })
  add(a: number, b: number) {
    return a + b;
  }
}
