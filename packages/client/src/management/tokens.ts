import type { Permission } from "@signalbox/protocol";
import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export interface Token {
  readonly id: string;
  readonly name: string;
  readonly permissions: readonly Permission[];
  /** The gateway that the token is bound to. */
  readonly gateway_id: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly last_four: string;
}

/** `token` is the secret text. The service returns it in this response only. */
export interface CreatedToken extends Token {
  readonly token: string;
}

export interface NewToken {
  readonly name: string;
  readonly permissions: readonly Permission[];
  readonly gateway_id?: string | undefined;
  readonly expires_at?: string | undefined;
}

export class TokensApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/tokens`;
  }

  async create(token: NewToken, options: RequestOptions = {}): Promise<CreatedToken> {
    const request = { body: token, ...options };
    return this.#transport.result<CreatedToken>("POST", this.#path, request);
  }

  list(options: RequestOptions = {}): List<Token> {
    return new List(this.#transport, this.#path, {}, options);
  }

  async get(id: string, options: RequestOptions = {}): Promise<Token> {
    return this.#transport.result<Token>("GET", this.#path + pathOf`/${id}`, options);
  }

  /** Takes effect immediately. */
  async revoke(id: string, options: RequestOptions = {}): Promise<{ readonly id: string }> {
    return this.#transport.result<{ id: string }>("DELETE", this.#path + pathOf`/${id}`, options);
  }
}
