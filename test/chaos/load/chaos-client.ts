/** Requests of the load, and whether a failed one is allowed to fail. */
import { Agent, type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { parseJson } from "../../support/send-request.ts";
import { ROOT_TOKEN } from "../../support/root-token.ts";
import type { LoadTarget } from "../cluster/load-target.ts";

export interface Outcome {
  readonly node: LoadTarget;
  readonly startedAt: number;
  readonly endedAt: number;
  /** 0 if the connection broke before the end of the response. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The parsed body, or why there is none. */
  readonly body: unknown;
}

export interface ChaosRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** Default: the root token as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Longer than any pause of a node: a request that takes longer hangs. */
const TIMEOUT_MS = 90_000;

const agent = new Agent({ keepAlive: true, scheduling: "fifo" });

/** Null if the node is down. */
export function request(node: LoadTarget, { body, headers, ...rest }: ChaosRequest): Promise<Outcome | null> {
  return send(node, {
    ...rest,
    text: body === undefined ? "" : JSON.stringify(body),
    headers: {
      "content-type": "application/json",
      ...(headers ?? { authorization: `Bearer ${ROOT_TOKEN}` }),
    },
  });
}

export interface PlainRequest {
  readonly method: string;
  readonly path: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Null if the node is down. */
export async function send(
  node: LoadTarget,
  { method, path, text, headers }: PlainRequest,
): Promise<Outcome | null> {
  const { url } = node;
  if (url === null) return null;
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const finish = (status: number, answerHeaders: IncomingHttpHeaders, body: unknown) =>
      resolve({ node, startedAt, endedAt: performance.now(), status, headers: answerHeaders, body });
    const fail = (error: NodeJS.ErrnoException) => finish(0, {}, error.code ?? String(error));
    const outgoing = httpRequest(url + path, {
      method,
      agent,
      headers: { ...headers, "content-length": Buffer.byteLength(text) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    outgoing.once("error", fail);
    outgoing.once("response", (response) => {
      let received = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (received += chunk));
      response.once("error", fail);
      response.once("end", () => finish(response.statusCode ?? 0, response.headers, parseJson(received)));
    });
    outgoing.end(text);
  });
}

export function describe({ node, status, body, startedAt, endedAt }: Outcome): string {
  const lasted = Math.round(endedAt - startedAt);
  return `${node.name} answered ${status} after ${lasted} ms: ${JSON.stringify(body)?.slice(0, 300)}`;
}

/** Whether the connection broke because the node was killed or paused. */
export const wasKilled = ({ node, status, startedAt }: Outcome): boolean =>
  status === 0 && node.mayHaveBrokenSince(startedAt);

export const logIdOf = ({ headers }: Outcome): string | null => {
  const id = headers["gw-aig-log-id"];
  return typeof id === "string" ? id : null;
};

export function errorCode(body: unknown): number | null {
  const { errors } = (body ?? {}) as { errors?: { code?: number }[] };
  return errors?.[0]?.code ?? null;
}
