/**
 * Plays Slack, so that the example runs without an app: a page with one channel, `chat.postMessage`, and events that are signed as Slack's are.
 */
import { createHmac, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const PAGE = readFileSync(join(import.meta.dirname, "index.html"));
const CHANNEL = "C0GENERAL";

interface Message {
  readonly from: string;
  readonly text: string;
  readonly ts: string;
  readonly thread_ts?: string;
}

export interface SlackOptions {
  readonly port: number;
  readonly botToken: string;
  readonly signingSecret: string;
}

export interface Slack {
  readonly url: string;
  /** Where events go, as it is entered in Event Subscriptions. */
  subscribe(requestUrl: string): void;
  close(): void;
}

export async function startSlack({ port, botToken, signingSecret }: SlackOptions): Promise<Slack> {
  const messages: Message[] = [];
  const readers = new Set<ServerResponse>();
  let requestUrl = "";

  const show = (message: Message) => {
    messages.push(message);
    for (const reader of readers) reader.write(`data: ${JSON.stringify(message)}\n\n`);
  };

  async function deliver(event: Message): Promise<void> {
    const body = JSON.stringify({
      type: "event_callback",
      team_id: "T0ACME",
      event_id: `Ev${randomUUID()}`,
      event: {
        ...event,
        type: "app_mention",
        channel: CHANNEL,
        user: "U0YOU",
        text: `<@U0BOT> ${event.text}`,
      },
    });
    const time = String(Math.floor(Date.now() / 1000));
    const signature = createHmac("sha256", signingSecret).update(`v0:${time}:${body}`).digest("hex");
    const response = await fetch(requestUrl, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-slack-request-timestamp": time,
        "x-slack-signature": `v0=${signature}`,
      },
      body,
    });
    console.log(`event delivered: ${response.status} ${await response.text()}`);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reply = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const ts = `${(Date.now() / 1000).toFixed(3)}${String(messages.length).padStart(3, "0")}`;
    switch (`${request.method} ${request.url}`) {
      case "GET /":
        response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(PAGE);
        return;
      case "GET /messages":
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const message of messages) response.write(`data: ${JSON.stringify(message)}\n\n`);
        response.flushHeaders();
        readers.add(response);
        response.once("close", () => readers.delete(response));
        return;
      case "POST /messages": {
        const message: Message = {
          from: "you",
          ts,
          ...(JSON.parse(await text(request)) as { text: string }),
        };
        show(message);
        reply(200, {});
        await deliver(message);
        return;
      }
      case "POST /api/chat.postMessage": {
        const posted = JSON.parse(await text(request)) as { text: string; thread_ts: string };
        if (request.headers.authorization !== `Bearer ${botToken}`) {
          reply(200, { ok: false, error: "invalid_auth" });
          return;
        }
        show({ from: "bot", text: posted.text, ts, thread_ts: posted.thread_ts });
        reply(200, { ok: true, ts });
        return;
      }
      default:
        reply(404, { ok: false, error: "unknown_method" });
    }
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
  }).listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    subscribe: (address) => (requestUrl = address),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
