import type { Permission } from "@signalbox/protocol";

/** A token in the management API. */
export interface Token {
  readonly id: string;
  readonly name: string;
  readonly permissions: readonly Permission[];
  readonly gateway_id: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly last_four: string;
}

export interface NewToken extends Token {
  /** Only in the response to the creation of the token. */
  readonly token: string;
}
