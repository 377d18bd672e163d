import type { GatewaySettings } from "./gateway-settings.ts";

/** A gateway as the request path sees it: immutable, replaced whole when its settings change. */
export interface Gateway {
  readonly accountId: string;
  readonly id: string;
  readonly isDefault: boolean;
  readonly createdAt: number;
  readonly modifiedAt: number;
  readonly settings: GatewaySettings;
  /** Grows whenever cached responses must no longer be used. */
  readonly cacheGeneration: number;
}

export const DEFAULT_GATEWAY = "default";
