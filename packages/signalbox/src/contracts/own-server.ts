/** How parts of the process call this server: as the operator, through the same code as a request from the network, without a connection. */
export interface OwnServer {
  /** `target` is path and query below `/v1` or `/accounts`. Errors of the server are responses. */
  call(call: OwnCall): Promise<Response>;
  /** The address of the traffic, e.g. `https://ai.example.com`. */
  readonly url: string;
}

export interface OwnCall {
  readonly method: string;
  readonly target: string;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | null;
  /** The credential of the call, as in `Authorization`; null if `headers` have it. Default: the root token. */
  readonly authorization?: string | null;
  readonly signal?: AbortSignal | undefined;
  /** The answer does not leave this process: what may be passed on to a caller is not asked. No header can say this. */
  readonly staysInside?: boolean;
  /** Who pays for the call. Only with `staysInside`. Default: the token of the credential, for which it also counts as a call. */
  readonly chargedTo?: Payer;
}

/** The call that another one is made for. */
export interface Payer {
  /** Whose budgets pay; null for those of no token. */
  readonly tokenId: string | null;
  /** Serialised flat object, instead of what headers say: it may have keys that no header may have, and budgets may depend on them. */
  readonly metadata: string;
}
