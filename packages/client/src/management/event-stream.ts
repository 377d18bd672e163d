/** Parses `text/event-stream` (WHATWG HTML, section 9.2.6) without reconnection: the stream ends when the response does. */

export interface ServerSentEvent {
  /** `message` if the event names no type. */
  readonly type: string;
  readonly data: string;
}

const LINE_END = /\r\n|\r|\n/;

export async function* readEventStream(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let type = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      text += decoder.decode(value, { stream: !done });
      // A carriage return at the end may be the first half of a line end.
      const isSplit = !done && text.endsWith("\r");
      const lines = (isSplit ? text.slice(0, -1) : text).split(LINE_END);
      text = (lines.pop() ?? "") + (isSplit ? "\r" : "");
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { type: type === "" ? "message" : type, data: data.join("\n") };
          type = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon === -1 ? line : line.slice(0, colon);
        const content = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") type = content;
        else if (field === "data") data.push(content);
      }
      if (done) return;
    }
  } finally {
    await reader.cancel();
  }
}
