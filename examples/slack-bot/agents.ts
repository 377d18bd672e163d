/** Answers when it is mentioned, in the thread of the message, and knows what was said there. One instance per channel. */
import { Agent, type WebhookEvent } from "signalbox";

/** https://api.slack.com/events/app_mention */
interface Mention {
  readonly type: string;
  readonly channel: string;
  readonly text: string;
  readonly ts: string;
  /** Of the thread, if the message is an answer in one. */
  readonly thread_ts?: string;
}

interface Reply {
  readonly channel: string;
  readonly thread: string;
}

export class SlackBot extends Agent {
  override onStart() {
    this
      .sql`CREATE TABLE IF NOT EXISTS message (thread TEXT, role TEXT, content TEXT, id INTEGER PRIMARY KEY) STRICT`;
  }

  /**
   * Slack waits three seconds, so the message is stored together with the work that it causes, and acknowledged. A delivery that Slack repeats has
   * the same id and does not get here.
   */
  async onEvent({ payload }: WebhookEvent) {
    const { event } = payload as { event?: Mention };
    if (event?.type !== "app_mention") return undefined;
    const thread = event.thread_ts ?? event.ts;
    this.#store(thread, "user", event.text.replaceAll(/<@\w+>\s*/g, ""));
    await this.queue("answer", { channel: event.channel, thread } satisfies Reply);
    return "queued";
  }

  /** Asks the model. Posting is an item of its own: when Slack fails, the model is not called again. */
  async answer({ channel, thread }: Reply) {
    const messages = this.sql<{ role: string; content: string }>`
      SELECT role, content FROM message WHERE thread = ${thread} ORDER BY id`;
    const text = await this.#ask(channel, messages);
    this.#store(thread, "assistant", text);
    await this.queue("post", { channel, thread, text }, { retry: { maxAttempts: 8, baseDelayMs: 1000 } });
  }

  /** Repeated with growing pauses when Slack fails; at last it is a dead letter that can be replayed. */
  async post({ channel, thread, text }: Reply & { text: string }) {
    const response = await this.fetch(
      `${this.env["SLACK_API"] ?? "https://slack.com/api"}/chat.postMessage`,
      {
        method: "POST",
        headers: {
          "content-type": "application/json; charset=utf-8",
          authorization: `Bearer ${this.env["SLACK_BOT_TOKEN"]}`,
        },
        body: JSON.stringify({ channel, thread_ts: thread, text }),
      },
    );
    // Slack reports errors with status 200.
    const { ok, error } = (await response.json()) as { ok: boolean; error?: string };
    if (!ok) throw new Error(`Slack answered ${response.status} ${error}`);
  }

  /** The gateway of this service: limits, cache, retries and the log of the call are its work. `echo` needs no key. */
  async #ask(channel: string, messages: readonly object[]): Promise<string> {
    const token = this.env["GATEWAY_TOKEN"];
    const response = await fetch(`${this.env["SIGNALBOX_URL"]}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "gw-aig-metadata": JSON.stringify({ channel }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({
        model: this.env["MODEL"] ?? "echo/echo",
        messages: [{ role: "system", content: "You answer in a Slack channel. Be brief." }, ...messages],
      }),
    });
    if (!response.ok) throw new Error(`the model answered ${response.status}: ${await response.text()}`);
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    return choices[0]?.message.content ?? "";
  }

  #store(thread: string, role: "user" | "assistant", content: string) {
    this.sql`INSERT INTO message (thread, role, content) VALUES (${thread}, ${role}, ${content})`;
  }
}
