/** WebSockets: hibernating ones with attachments, tags and automatic responses, and accepted ones. */
import { DurableObject } from "cloudflare:workers";
import { Notes, outcome, show } from "./show";

export class Socket extends DurableObject {
  log: unknown[] = [];

  fetch(request: Request) {
    const url = new URL(request.url);
    if (request.headers.get("upgrade") !== "websocket")
      return new Response("upgrade needed", { status: 426 });
    const [client, server] = Object.values(new WebSocketPair());
    if (url.pathname === "/accepted") this.#accept(server);
    else {
      const tags = url.searchParams.getAll("tag");
      this.ctx.acceptWebSocket(server, tags);
      server.serializeAttachment({ tags, at: new Date(1), seen: 0 });
      server.send("welcome");
    }
    const protocol = request.headers.get("sec-websocket-protocol");
    const headers = protocol === null ? {} : { "sec-websocket-protocol": protocol.split(",")[0] };
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  #accept(server: WebSocket) {
    server.accept();
    server.addEventListener("message", ({ data }) => {
      if (data === "close") server.close(3001, "asked");
      else if (data === "throw") throw new Error("in a listener");
      else server.send(typeof data === "string" ? `got ${data}` : data);
    });
    server.addEventListener("close", ({ code, reason, wasClean }) => {
      this.log.push(["close event", code, reason, wasClean]);
      if (wasClean) server.close(code, reason);
    });
  }

  async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer) {
    if (typeof message !== "string") return socket.send(show(message).ArrayBuffer.join(" "));
    const attachment = socket.deserializeAttachment();
    const [command, argument = ""] = message.split(":");
    socket.serializeAttachment({ ...attachment, seen: attachment.seen + 1 });
    const answer = (value: unknown) => socket.send(JSON.stringify([command, value]));
    switch (command) {
      case "attachment":
        return answer(show(socket.deserializeAttachment()));
      case "binary":
        return socket.send(new Uint8Array([1, 2, 3]).subarray(1));
      case "tags":
        return answer([
          this.ctx.getTags(socket),
          this.ctx.getWebSockets(argument).length,
          this.ctx.getWebSockets("no such").length,
        ]);
      case "all":
        for (const other of this.ctx.getWebSockets()) other.send(`to all: ${argument}`);
        return;
      case "state":
        return answer([socket.readyState, socket.url, socket.protocol, socket.extensions]);
      case "auto":
        this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
        return answer([
          this.ctx.getWebSocketAutoResponse().request,
          this.ctx.getWebSocketAutoResponse().response,
        ]);
      case "answered":
        return answer(this.ctx.getWebSocketAutoResponseTimestamp(socket) instanceof Date);
      case "large":
        answer(await outcome(() => socket.serializeAttachment("x".repeat(Number(argument)))));
        return socket.serializeAttachment(attachment);
      case "function":
        return answer(await outcome(() => socket.serializeAttachment(() => 1)));
      case "object":
        return answer(await outcome(() => socket.send({ a: 1 })));
      case "throw":
        throw new Error("in webSocketMessage");
      case "close": {
        const [code, reason] = argument.split(",");
        const args = code === "" ? [] : reason === undefined ? [Number(code)] : [Number(code), reason];
        const result = await outcome(() => socket.close(...args));
        this.log.push(["close()", args, result, socket.readyState, await outcome(() => socket.send("late"))]);
        if (result.throws !== undefined) answer(result);
        return;
      }
      default:
        return answer("unknown");
    }
  }

  async webSocketClose(socket: WebSocket, code: number, reason: string, wasClean: boolean) {
    this.log.push([
      "webSocketClose",
      code,
      reason,
      wasClean,
      socket.readyState,
      this.ctx.getWebSockets().length,
    ]);
    this.log.push(["attachment", show(socket.deserializeAttachment()?.seen ?? null)]);
    // Programs answer the close frame themselves.
    this.log.push([
      "answer",
      await outcome(() => (wasClean && code !== 1005 ? socket.close(code, reason) : socket.close())),
    ]);
  }

  webSocketError(_socket: WebSocket, error: unknown) {
    this.log.push(["webSocketError", show(error)]);
  }

  takeLog() {
    return this.log.splice(0);
  }

  open() {
    return this.ctx.getWebSockets().length;
  }

  /** Uses of a pair without a client. */
  async pair() {
    const notes = new Notes();
    const pairs = () => new WebSocketPair();
    await notes.note("keys", () => Object.keys(pairs()));
    await notes.note("without new", () => (WebSocketPair as never as () => unknown)());
    await notes.note("send before accept", () => pairs()[0].send("x"));
    await notes.note("close before accept", () => pairs()[0].close());
    await notes.note("11 tags", () =>
      this.ctx.acceptWebSocket(
        pairs()[1],
        Array.from({ length: 11 }, (_, i) => `t${i}`),
      ),
    );
    await notes.note("a long tag", () => this.ctx.acceptWebSocket(pairs()[1], ["x".repeat(257)]));
    await notes.note("equal tags", () => {
      const pair = pairs();
      this.ctx.acceptWebSocket(pair[1], ["a", "a", "b"]);
      return this.ctx.getTags(pair[1]);
    });
    await notes.note("accepted before", () => {
      const [, server] = Object.values(pairs());
      server.accept();
      this.ctx.acceptWebSocket(server);
    });
    await notes.note("accepted twice", () => {
      const [, server] = Object.values(pairs());
      this.ctx.acceptWebSocket(server);
      this.ctx.acceptWebSocket(server);
    });
    await notes.note("accept after acceptWebSocket", () => {
      const [, server] = Object.values(pairs());
      this.ctx.acceptWebSocket(server);
      server.accept();
    });
    await notes.note("tags of an accepted one", () => {
      const [, server] = Object.values(pairs());
      server.accept();
      return this.ctx.getTags(server);
    });
    await notes.note("attachment of a new one", () => pairs()[0].deserializeAttachment());
    await notes.note(
      "a long automatic response",
      () => new WebSocketRequestResponsePair("x".repeat(2049), "y"),
    );
    await notes.note("set a long automatic response", () =>
      this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("x".repeat(2049), "y")),
    );
    await notes.note("no automatic response", () => [
      this.ctx.setWebSocketAutoResponse(),
      this.ctx.getWebSocketAutoResponse(),
    ]);
    await notes.note("both ends here", async () => {
      const [client, server] = Object.values(pairs());
      const heard: unknown[] = [];
      client.accept();
      server.accept();
      const closed = new Promise((resolve) =>
        client.addEventListener("close", ({ code, reason }) => resolve([code, reason])),
      );
      client.addEventListener("message", ({ data }) => heard.push(show(data)));
      server.send("text");
      server.send(new Uint8Array([7]));
      server.close(4000, "end");
      return [await closed, heard];
    });
    for (const args of [
      [1005],
      [1006],
      [999],
      [5000],
      [1000, "x".repeat(124)],
      [undefined, "reason"],
      [1001],
      [3000],
    ])
      await notes.note(`close ${String(args[0])} ${String(args[1]?.length)}`, () => {
        const [client, server] = Object.values(pairs());
        client.accept();
        server.accept();
        return server.close(...args);
      });
    await notes.note("101 without a socket", () => new Response(null, { status: 101 }));
    await notes.note(
      "a socket without 101",
      () => new Response(null, { status: 200, webSocket: pairs()[0] }),
    );
    return notes.steps;
  }
}
