import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
}

export class AccountsApi {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Requires the root token. */
  async create(
    account: { id?: string | undefined; name?: string | undefined } = {},
    options: RequestOptions = {},
  ): Promise<Account> {
    return this.#transport.result<Account>("POST", "/accounts", { body: account, ...options });
  }

  /** Lists the accounts that the token has access to. */
  list(options: RequestOptions = {}): List<Account> {
    return new List(this.#transport, "/accounts", {}, options);
  }

  async get(id: string, options: RequestOptions = {}): Promise<Account> {
    return this.#transport.result<Account>("GET", pathOf`/accounts/${id}`, options);
  }
}
