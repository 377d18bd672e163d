import type { GatewaySettings } from "./gateway-settings.ts";

/** A gateway as calls use it: immutable, and replaced as a whole when its settings change. */
export interface Gateway {
  readonly accountId: string;
  readonly id: string;
  readonly isDefault: boolean;
  readonly createdAt: number;
  readonly modifiedAt: number;
  readonly settings: GatewaySettings;
  /** Increases when cached responses must no longer be used. */
  readonly cacheGeneration: number;
}

export const DEFAULT_GATEWAY = "default";
