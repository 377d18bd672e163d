import type { Permission } from "@signalbox/protocol";

/** A token of one account. Its text is returned once, at creation, and never stored. */
export interface Token {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** SHA-256 of the text, in hexadecimal. */
  readonly hash: string;
  readonly suffix: string;
  readonly permissions: ReadonlySet<Permission>;
  /** If set, the token is limited to the calls, settings, logs, usage data and tokens of this gateway. */
  readonly gatewayId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
}
