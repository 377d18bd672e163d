/** `EventSource`: the events of a stream of the server-sent events of the HTML standard, section 9.2. Node has it behind a flag only. */

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 2;
/** The time before a new connection; a stream may set another. */
const RETRY_MS = 3000;

export class EventSource extends EventTarget {
  static readonly CONNECTING = CONNECTING;
  static readonly OPEN = OPEN;
  static readonly CLOSED = CLOSED;
  readonly CONNECTING = CONNECTING;
  readonly OPEN = OPEN;
  readonly CLOSED = CLOSED;
  readonly withCredentials = false;
  readonly url: string;
  onopen: ((event: Event) => unknown) | null = null;
  onmessage: ((event: Event) => unknown) | null = null;
  onerror: ((event: Event) => unknown) | null = null;
  readonly #stop = new AbortController();
  readonly #fetch: typeof fetch;
  #state = CONNECTING;
  #retryMs = RETRY_MS;
  #lastId = "";

  constructor(url: string | URL, options: { readonly fetcher?: { fetch: typeof fetch } } = {}) {
    super();
    this.url = new URL(url).href;
    const { fetcher } = options;
    this.#fetch = (input, init) => (fetcher ?? globalThis).fetch(input, init);
    void this.#run();
  }

  /** The events of a stream that a program has already. */
  static from(stream: ReadableStream<Uint8Array>): EventSource {
    const isUsed = { value: false };
    return new EventSource("https://stream.invalid/", {
      fetcher: {
        fetch: async () => {
          // The stream has one life: there is nothing to connect to again.
          if (isUsed.value) return new Response(null, { status: 204 });
          isUsed.value = true;
          return new Response(stream, { headers: { "content-type": "text/event-stream" } });
        },
      },
    });
  }

  get readyState(): number {
    return this.#state;
  }

  close(): void {
    this.#state = CLOSED;
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    while (this.#state !== CLOSED) {
      try {
        if (!(await this.#connect())) return;
      } catch {
        // The connection broke; another one follows.
      }
      if (this.readyState === CLOSED) return;
      this.#state = CONNECTING;
      this.#emit(new Event("error"), this.onerror);
      await this.#pause();
    }
  }

  /** Reads one connection to its end. False: there is nothing to connect to. */
  async #connect(): Promise<boolean> {
    const response = await this.#fetch(this.url, {
      headers: {
        accept: "text/event-stream",
        "cache-control": "no-store",
        ...(this.#lastId === "" ? {} : { "last-event-id": this.#lastId }),
      },
      signal: this.#stop.signal,
    });
    const type = response.headers.get("content-type") ?? "";
    if (
      response.status !== 200 ||
      !/^text\/event-stream(?:\s*;|\s*$)/i.test(type) ||
      response.body === null
    ) {
      await response.body?.cancel();
      this.close();
      this.#emit(new Event("error"), this.onerror);
      return false;
    }
    this.#state = OPEN;
    this.#emit(new Event("open"), this.onopen);
    let rest = "";
    let fields: string[] = [];
    for await (const text of response.body.pipeThrough(new TextDecoderStream() as never)) {
      // A carriage return at the end may be the first half of a line end.
      const parts = (rest + String(text)).split(/\r\n|\n|\r(?!$)/);
      rest = parts.pop() ?? "";
      for (const line of parts) {
        if (line !== "") fields.push(line);
        else {
          this.#dispatch(fields);
          fields = [];
        }
        if (this.readyState === CLOSED) return false;
      }
    }
    return true;
  }

  #dispatch(lines: readonly string[]): void {
    const data: string[] = [];
    let type = "message";
    for (const line of lines) {
      const colon = line.indexOf(":");
      const name = colon === -1 ? line : line.slice(0, colon);
      const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") data.push(value);
      else if (name === "event" && value !== "") type = value;
      else if (name === "id" && !value.includes("\0")) this.#lastId = value;
      else if (name === "retry" && /^\d+$/.test(value)) this.#retryMs = Number(value);
    }
    if (data.length === 0) return;
    const event = new MessageEvent(type, {
      data: data.join("\n"),
      lastEventId: this.#lastId,
      origin: new URL(this.url).origin,
    });
    this.#emit(event, type === "message" ? this.onmessage : null);
  }

  #emit(event: Event, handler: ((event: Event) => unknown) | null): void {
    handler?.call(this, event);
    this.dispatchEvent(event);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#retryMs);
      this.#stop.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
