import type { Permission } from "@signalbox/protocol";

/** A credential of one account, without the credential: the text itself is shown once at creation and never stored. */
export interface Token {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** SHA-256 of the token's text, hexadecimal. */
  readonly hash: string;
  readonly suffix: string;
  readonly permissions: ReadonlySet<Permission>;
  /** When set, the token reaches this gateway only: its calls, settings, logs, figures and tokens. */
  readonly gatewayId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
}
