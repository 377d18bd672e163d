/** Shared by the gateway's tests: raw HTTP requests, and rows of the call log. */
import { type IncomingHttpHeaders, request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { once } from "node:events";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "./test-server.ts";

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export function callPath(path: string, gateway = "default", account = "default"): string {
  return `/v1/${account}/${gateway}/${path}`;
}

export const CHAT = JSON.stringify({ model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] });

export interface ProviderAndServer {
  readonly provider: ProviderPeer;
  readonly server: TestServer;
  stop(): Promise<void>;
}

/** A provider that answers `{ ok: true }`, and a server whose options refer to the provider's address. */
export async function startWithProvider(
  options: (at: { baseUrl: string }) => TestServerOptions,
): Promise<ProviderAndServer> {
  const provider = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  const server = await startTestServer(options({ baseUrl: provider.url }));
  return {
    provider,
    server,
    async stop() {
      await server.stop();
      await provider.close();
    },
  };
}

/** A POST of JSON to a path below the gateway `default`, unless the options say otherwise. */
export async function post(
  server: TestServer,
  path: string,
  options: {
    body?: string | Buffer;
    headers?: Record<string, string>;
    gateway?: string;
    method?: string;
  } = {},
): Promise<RawAnswer> {
  return send(server, options.method ?? "POST", callPath(path, options.gateway), {
    body: options.body ?? CHAT,
    headers: { "content-type": "application/json", ...options.headers },
  });
}

export async function send(
  server: TestServer,
  method: string,
  path: string,
  options: { body?: string | Buffer; headers?: Record<string, string> } = {},
): Promise<RawAnswer> {
  const { port } = new URL(server.url);
  const request = httpRequest({
    host: "127.0.0.1",
    port,
    method,
    path,
    agent: false,
    headers: {
      ...(options.body === undefined ? {} : { "content-length": String(Buffer.byteLength(options.body)) }),
      ...options.headers,
    },
  });
  // As bytes: Node encodes headers as UTF-8 if they are sent together with text.
  request.end(options.body === undefined ? undefined : Buffer.from(options.body as string));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).toString(),
  };
}

/** Writes bytes and resolves with the response bytes until the server closes or `until` matches. */
export async function rawExchange(server: TestServer, bytes: string, until: RegExp): Promise<string> {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1");
  socket.on("error", () => undefined);
  socket.write(bytes, "latin1");
  try {
    for await (const chunk of socket) {
      text += chunk as string;
      if (until.test(text)) break;
    }
  } finally {
    socket.destroy();
  }
  return text;
}

/** Rows of the call log, newest first, in pages of fifty. */
export async function readLogs(
  server: TestServer,
  gateway = "default",
  page = 1,
): Promise<Record<string, unknown>[]> {
  const { body } = await server.api(
    "GET",
    `/accounts/default/ai-gateway/gateways/${gateway}/logs?per_page=50&page=${page}`,
  );
  return (body as { result: Record<string, unknown>[] }).result;
}

/** Changes the settings of a gateway. Another one than `default` is created if it is not there. */
export async function setGateway(
  server: TestServer,
  settings: Record<string, unknown>,
  gateway = "default",
): Promise<void> {
  const all = "/accounts/default/ai-gateway/gateways";
  const put = () => server.api("PUT", `${all}/${gateway}`, settings);
  let { status, body } = await put();
  if (status === 404) {
    await server.api("POST", all, { id: gateway });
    ({ status, body } = await put());
  }
  if (status !== 200) throw new Error(JSON.stringify(body));
}
