/** What programs are asked, in the protocols of the packages that they are built on. Each question names what was seen in the answer; null: nobody answers it there. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";

/** An answer that comes later counts as none. */
const PATIENCE_MS = 45_000;
/** Some programs talk for ever. */
const LONGEST_MS = 60_000;
/** What a client sees of a connection that nobody greets. */
const GREETING_MS = 2_000;

interface Frame {
  readonly type?: string;
  readonly id?: string;
  readonly name?: string;
  readonly success?: boolean;
  readonly error?: unknown;
  readonly body?: string;
  readonly done?: boolean;
}

const get = (url: string, init: RequestInit = {}) =>
  fetch(url, { redirect: "manual", signal: AbortSignal.timeout(PATIENCE_MS), ...init });

/** A request to a path of the program's own. A refusal is an answer, too; an error of the server is none. */
export async function askPath(url: string, init?: RequestInit): Promise<string> {
  const response = await get(url, init);
  const text = (await response.text()).replaceAll(/\s+/g, " ").trim();
  if (response.status >= 500) throw new Error(`${response.status} ${text.slice(0, 200)}`);
  return `${response.status} ${text.slice(0, 60)}`.trim();
}

/** An agent greets with its name, and answers a call of a method that no class has with an error. */
export async function askAgent(url: string): Promise<string | null> {
  const socket = new AskedSocket(url);
  try {
    const greeting = await socket.next(({ type }) => type === "cf_agent_identity", GREETING_MS);
    if (greeting === null) return socket.seen();
    socket.send({ type: "rpc", id: "call", method: "methodOfNoClass", args: [] });
    const answer = await socket.next(({ type, id }) => type === "rpc" && id === "call", PATIENCE_MS);
    if (answer === null) throw new Error("a call is not answered");
    return `greets as ${greeting.name}, answers calls`;
  } finally {
    socket.close();
  }
}

/** A chat agent has messages; it is sent one, and its stream is read to the end. Null: it is none. */
export async function askChat(url: string): Promise<string | null> {
  const history = await get(`${url}/get-messages`);
  const messages = await history.json().catch(() => null);
  if (history.status !== 200 || !Array.isArray(messages)) return null;
  const socket = new AskedSocket(url);
  try {
    const message = { id: "asked", role: "user", parts: [{ type: "text", text: "Say this again." }] };
    const init = { method: "POST", body: JSON.stringify({ messages: [message] }) };
    socket.send({ type: "cf_agent_use_chat_request", id: "chat", init });
    let text = "";
    for (const until = Date.now() + LONGEST_MS; Date.now() < until;) {
      const part = await socket.next(
        ({ type, id }) => type === "cf_agent_use_chat_response" && id === "chat",
        PATIENCE_MS,
      );
      if (part === null) throw new Error(`the chat stops without an end, after "${text.slice(-200)}"`);
      text += part.body ?? "";
      if (part.error === true) return `chats, with an error of its model: ${text.slice(-120)}`;
      if (part.done === true) break;
    }
    const spoken = [...text.matchAll(/"delta":"([^"]*)"/g)].map(([, delta]) => delta).join("");
    return `chats: ${(spoken === "" ? text : spoken).slice(0, 60)}`;
  } finally {
    socket.close();
  }
}

/** Null: there is no card. */
export async function askCard(url: string): Promise<string | null> {
  const response = await get(`${url}/.well-known/agent-card.json`);
  const card = (await response.json().catch(() => null)) as { readonly protocolVersion?: string } | null;
  return response.status === 200 && card?.protocolVersion !== undefined ? "A2A card" : null;
}

/** A WebSocket that keeps what has arrived. */
class AskedSocket {
  readonly #socket: WebSocket;
  readonly #opened: Promise<unknown>;
  readonly #received: Frame[] = [];
  #raw = 0;
  #last = "";
  #end: string | null = null;
  #wake: () => void = () => undefined;

  constructor(url: string) {
    this.#socket = new WebSocket(url.replace(/^http/, "ws"));
    this.#opened = once(this.#socket, "open");
    // Seen as `#end`.
    this.#opened.catch(() => undefined);
    this.#socket.on("message", (message, isBinary) => {
      this.#raw += 1;
      this.#last = (message as Buffer).toString("utf8");
      const frame = isBinary ? null : parse(this.#last);
      if (frame !== null) this.#received.push(frame);
      this.#wake();
    });
    this.#socket.on("unexpected-response", (request, response) =>
      this.#ends(`status ${response.statusCode}`, () => request.destroy()),
    );
    this.#socket.on("error", (error) => this.#ends(error.message));
    this.#socket.on("close", (code, reason) => this.#ends(`closed with ${code} ${String(reason)}`));
  }

  send(frame: unknown): void {
    void this.#opened.then(
      () => this.#socket.send(JSON.stringify(frame)),
      () => undefined,
    );
  }

  /** Removed from what was received. Null: none came. */
  async next(fits: (frame: Frame) => boolean, withinMs: number): Promise<Frame | null> {
    const late = sleep(withinMs, "late" as const);
    for (;;) {
      const index = this.#received.findIndex(fits);
      if (index !== -1) return this.#received.splice(index, 1)[0] ?? null;
      if (this.#end !== null) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      if ((await Promise.race([promise, late])) === "late") return null;
    }
  }

  /** What a connection that sends no greeting of an agent has shown. Null: it was refused. */
  seen(): string | null {
    if (this.#end === null) return `a WebSocket, ${this.#raw} messages`;
    if (/^status [1-4]/.test(this.#end)) return null;
    if (this.#last.includes("McpAgent must be addressed")) return "an McpAgent, for MCP only";
    throw new Error(this.#end);
  }

  close(): void {
    this.#socket.terminate();
  }

  #ends(how: string, then?: () => void): void {
    this.#end ??= how;
    then?.();
    this.#wake();
  }
}

function parse(text: string): Frame | null {
  try {
    return JSON.parse(text) as Frame;
  } catch {
    return null;
  }
}
