/** A gateway as the management interface shows it. */
export interface Gateway {
  readonly id: string;
  readonly is_default: boolean;
  readonly created_at: string;
  readonly modified_at: string;
  readonly authentication: boolean;
  readonly cache_ttl: number | null;
  readonly cache_invalidate_on_update: boolean;
  readonly collect_logs: boolean;
  readonly log_management: number | null;
  readonly log_management_strategy: "STOP_INSERTING" | "DELETE_OLDEST" | null;
  readonly rate_limiting_interval: number | null;
  readonly rate_limiting_limit: number | null;
  readonly rate_limiting_technique: "fixed" | "sliding" | null;
  readonly retry_max_attempts: number | null;
  readonly retry_delay: number | null;
  readonly retry_backoff: "constant" | "linear" | "exponential" | null;
}

export type GatewayChange = Partial<Omit<Gateway, "id" | "is_default" | "created_at" | "modified_at">>;
