import type { Permission } from "@signalbox/protocol";

/** A token as the management interface shows it. */
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
  /** In the answer to its creation only. */
  readonly token: string;
}
