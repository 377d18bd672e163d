/** Agents and instances as the management interface shows them. */
export interface AgentClass {
  /** Kebab-case, as in addresses. */
  readonly name: string;
  readonly class_name: string;
  readonly is_built_in: boolean;
  readonly callable: readonly CallableMethod[];
  readonly instance_count: number;
}

export interface CallableMethod {
  readonly name: string;
  readonly description: string | null;
  readonly streaming: boolean;
}

export interface Instance {
  readonly agent: string;
  readonly name: string;
  readonly created_at: string;
  readonly last_active_at: string;
  readonly in_memory: boolean;
  readonly connection_count: number;
}

export interface InstanceDetail extends Instance {
  readonly state: unknown;
  readonly queue_count: number;
  readonly dead_letter_count: number;
  readonly schedule_count: number;
  readonly next_due_at: string | null;
}

export interface QueueItem {
  readonly id: string;
  readonly callback: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly created_at: string;
  readonly next_attempt_at: string;
  readonly last_error: string | null;
}

export interface DeadLetter {
  readonly id: string;
  readonly origin: "queue" | "schedule";
  readonly callback: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly error: string;
  readonly created_at: string;
  readonly failed_at: string;
}

export interface Schedule {
  readonly id: string;
  readonly type: "scheduled" | "delayed" | "cron" | "interval";
  readonly callback: string;
  readonly payload: unknown;
  readonly due_at: string;
  readonly cron: string | null;
  readonly interval_seconds: number | null;
}

export interface LiveConnection {
  readonly id: string;
  readonly tags: readonly string[];
  readonly is_readonly: boolean;
  readonly uri: string;
}

export interface Activity {
  readonly type: string;
  readonly timestamp: string;
  readonly detail: Readonly<Record<string, unknown>>;
}
