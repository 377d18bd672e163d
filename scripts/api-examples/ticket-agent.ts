/** The agent of the examples: it queues work that waits, work that fails, and a schedule. */
import { WebhookAgent, type WebhookEvent } from "signalbox";

export class TicketAgent extends WebhookAgent {
  override async onEvent(event: WebhookEvent) {
    if (event.type === "ticket.slow") await new Promise((resolve) => setTimeout(resolve, 6000));
    if (event.type === "ticket.broken") throw new Error("the help desk answered 503");
    const once = { retry: { maxAttempts: 1 } };
    if (this.name === "acme-billing") {
      for (const ticket of ["T-1", "T-2"]) await this.queue("fail", { ticket }, once);
    } else {
      const later = { retry: { maxAttempts: 5, baseDelayMs: 600_000, maxDelayMs: 600_000 } };
      await this.queue("fail", { ticket: "T-3" }, later);
    }
    await this.schedule("0 3 * * *", "tidy", { keep: 100 });
    return undefined;
  }

  fail() {
    throw new Error("the help desk answered 503");
  }

  tidy() {}
}
