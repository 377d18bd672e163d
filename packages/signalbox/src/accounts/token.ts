import type { Permission } from "@signalbox/protocol";
import type { TokenPolicy } from "./token-policy.ts";

/** A token of one account: immutable, and replaced as a whole when it is changed. Its text is returned once, at creation, and never stored. */
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
  /** Refused everywhere until it is enabled again. */
  readonly isDisabled: boolean;
  /** The secret before the last rotation, and the time from which it is refused; null if there is none. */
  readonly previous: { readonly hash: string; readonly endsAt: number } | null;
  /** Set on the token of a caller who sent the secret before the last rotation. */
  readonly isByPrevious?: true;
  /** The limits of a virtual key; null for a token without any. */
  readonly policy: TokenPolicy | null;
}
