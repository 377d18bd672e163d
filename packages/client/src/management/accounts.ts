import { List } from "./list.ts";
import { pathOf, type RequestOptions, type Transport } from "./transport.ts";

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

  /** The root token only. */
  async create(account: { id?: string; name?: string } = {}, options: RequestOptions = {}): Promise<Account> {
    return this.#transport.result<Account>("POST", "/accounts", { body: account, ...options });
  }

  /** The accounts that the token can see. */
  list(options: RequestOptions = {}): List<Account> {
    return new List(this.#transport, "/accounts", {}, options);
  }

  async get(id: string, options: RequestOptions = {}): Promise<Account> {
    return this.#transport.result<Account>("GET", pathOf`/accounts/${id}`, options);
  }
}
