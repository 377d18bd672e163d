/**
 * Small requests to the servers that give credentials. The addresses are the operator's: they may be private, as those of metadata services are.
 *
 * Invariant: an answer takes at most `limitMs`, whatever the server sends meanwhile. Calls wait for it.
 */
import { afterAwakeTime } from "../../../core/awake-time.ts";
import { toOrigin, type UpstreamClient } from "../../../engines/relay/index.ts";

export interface CredentialRequest {
  readonly url: string;
  readonly method?: "GET" | "POST" | "PUT";
  /** Name, value, … */
  readonly headers?: readonly string[];
  readonly body?: string;
}

export interface CredentialAnswer {
  readonly status: number;
  readonly body: string;
}

/** Resolves with the response; rejects when the server cannot be reached or is silent. */
export type AskServer = (request: CredentialRequest) => Promise<CredentialAnswer>;

/** An answer with a credential is much shorter. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Such servers answer within milliseconds, in another region within one second. */
const LIMIT_MS = 5000;

export function askServer(client: Pick<UpstreamClient, "send">, limitMs: number = LIMIT_MS): AskServer {
  return ({ url, method = "GET", headers = [], body }) =>
    new Promise((resolve, reject) => {
      const address = new URL(url);
      const chunks: Buffer[] = [];
      let status = 0;
      let size = 0;
      const giveUp = (why: string) => {
        cancel();
        exchange.abort();
        reject(new Error(`${address.host} ${why}`));
      };
      const cancel = afterAwakeTime(limitMs, () => giveUp("did not answer in time"));
      const exchange = client.send(
        {
          origin: toOrigin(address, true),
          method,
          target: address.pathname + address.search,
          headers: [...headers, "accept-encoding", "identity"],
          body: body === undefined ? { kind: "none" } : { kind: "whole", bytes: Buffer.from(body) },
        },
        {
          onHead: (head) => (status = head.status),
          onBody(chunk, isLast) {
            chunks.push(chunk);
            size += chunk.length;
            if (size > MAX_ANSWER_BYTES) return giveUp("sent an answer that is too long");
            if (!isLast) return;
            cancel();
            resolve({ status, body: Buffer.concat(chunks).toString("utf8") });
          },
          onReadEnd: () => undefined,
          onFailure: () => giveUp("cannot be reached"),
        },
      );
    });
}

export const FORM = ["content-type", "application/x-www-form-urlencoded"] as const;

export type Fields = Readonly<Record<string, unknown>>;

/** The members of an answer; throws for a refusal, with the code or text that the server sends. */
export function readAnswer(who: string, { status, body }: CredentialAnswer): Fields {
  const value = parseJson(body);
  const fields = typeof value === "object" && value !== null ? (value as Fields) : null;
  if (status === 200 && fields !== null) return fields;
  // Google's APIs have an object in `error`.
  const inner = fields?.["error"];
  const {
    code,
    status: state,
    error,
    error_description: text,
    message,
  } = {
    ...fields,
    ...(typeof inner === "object" ? inner : {}),
  } as Fields;
  const said = [code, state, error, text, message].filter((one) => typeof one === "string" && one !== "");
  throw new Error(
    `${who} refused the identity: ${said.length === 0 ? `HTTP ${status}` : said.join(": ").slice(0, 300)}`,
  );
}

/** Undefined for a page, or XML. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A text that becomes part of a header. */
export function requireToken(who: string, value: unknown): string {
  if (typeof value === "string" && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new Error(`${who} gave no credential`);
}
