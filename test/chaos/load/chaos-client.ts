/** Requests of the load, and whether a failed one is allowed to fail. */
import { parseJson } from "../../support/send-request.ts";
import { ROOT_TOKEN } from "../../support/root-token.ts";
import type { ChaosNode } from "../cluster/chaos-node.ts";

export interface Outcome {
  readonly node: ChaosNode;
  readonly startedAt: number;
  readonly endedAt: number;
  /** 0 if the connection broke before the end of the response. */
  readonly status: number;
  readonly headers: Headers;
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

/** Null if the node is down. */
export async function request(
  node: ChaosNode,
  { method, path, body, headers }: ChaosRequest,
): Promise<Outcome | null> {
  const { url } = node;
  if (url === null) return null;
  const startedAt = performance.now();
  const finish = (status: number, answerHeaders: Headers, answerBody: unknown): Outcome => ({
    node,
    startedAt,
    endedAt: performance.now(),
    status,
    headers: answerHeaders,
    body: answerBody,
  });
  try {
    const response = await fetch(url + path, {
      method,
      headers: {
        "content-type": "application/json",
        ...(headers ?? { authorization: `Bearer ${ROOT_TOKEN}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    return finish(response.status, response.headers, parseJson(text));
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    return finish(0, new Headers(), cause?.code ?? String(error));
  }
}

export function describe({ node, status, body, startedAt, endedAt }: Outcome): string {
  const lasted = Math.round(endedAt - startedAt);
  return `${node.name} answered ${status} after ${lasted} ms: ${JSON.stringify(body)?.slice(0, 300)}`;
}

/** Whether the connection broke because the node was killed or paused. */
export const wasKilled = ({ node, status, startedAt }: Outcome): boolean =>
  status === 0 && node.mayHaveBrokenSince(startedAt);

export function errorCode(body: unknown): number | null {
  const { errors } = (body ?? {}) as { errors?: { code?: number }[] };
  return errors?.[0]?.code ?? null;
}
