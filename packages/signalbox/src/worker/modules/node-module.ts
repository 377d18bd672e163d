/**
 * The module `cloudflare:node`: HTTP servers of `node:http` as handlers of a worker. A server that does not listen yet gets a port of the loopback
 * interface, which other machines cannot reach; a request is sent to it there.
 */
import { once } from "node:events";
import { type IncomingMessage, request as sendRequest, type Server } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

type Described = number | { readonly port?: number | null } | Server;

/** A handler `fetch` that the server answers. */
export function httpServerHandler(described: Described): { fetch(request: Request): Promise<Response> } {
  const port = isServer(described) ? listen(described) : Promise.resolve(portOf(described));
  // A failure is that of the requests.
  port.catch(() => undefined);
  return { fetch: async (request) => send(await port, request) };
}

/** Lets the server that listens on the port answer the request. */
export async function handleAsNodeRequest(described: Described, request: Request): Promise<Response> {
  return send(isServer(described) ? await listen(described) : portOf(described), request);
}

function isServer(described: Described): described is Server {
  return typeof described === "object" && typeof (described as Partial<Server> | null)?.listen === "function";
}

function portOf(described: Exclude<Described, Server>): number {
  const port = typeof described === "number" ? described : (described as { port?: unknown } | null)?.port;
  if (typeof port !== "number" || !Number.isInteger(port) || port < 0 || port > 65_535)
    throw new TypeError("httpServerHandler() takes a server or the port of one");
  return port;
}

async function listen(server: Server): Promise<number> {
  if (server.address() === null) {
    if (!server.listening) server.listen({ port: 0, host: "127.0.0.1", exclusive: true });
    await once(server, "listening");
  }
  return (server.address() as { readonly port: number }).port;
}

async function send(port: number, request: Request): Promise<Response> {
  const { pathname, search, host } = new URL(request.url);
  const outgoing = sendRequest({
    host: "127.0.0.1",
    port,
    path: pathname + search,
    method: request.method,
    headers: { ...Object.fromEntries(request.headers), host },
    signal: request.signal,
  });
  const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
  if (request.body === null) outgoing.end();
  // The server may answer before it has read the body, or without reading it.
  else pipeline(Readable.fromWeb(request.body as never), outgoing).catch(() => undefined);
  const [incoming] = await answered;
  const headers = new Headers();
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2)
    headers.append(incoming.rawHeaders[i] ?? "", incoming.rawHeaders[i + 1] ?? "");
  const status = incoming.statusCode ?? 502;
  const hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
  if (!hasBody) incoming.resume();
  return new Response(hasBody ? (Readable.toWeb(incoming) as ReadableStream) : null, {
    status,
    statusText: incoming.statusMessage ?? "",
    headers,
  });
}
