import { List } from "./list.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export type AuditOutcome = "success" | "refused" | "failed" | "unknown";

/** One management write. */
export interface AuditEntry {
  /** Number in the chain of the account. */
  readonly seq: number;
  readonly id: string;
  readonly when: string;
  readonly account_id: string | null;
  readonly action: {
    /** `create`, `update`, `delete`, or the name of an action. */
    readonly type: string;
    readonly result: boolean;
    readonly outcome: AuditOutcome;
    readonly status: number | null;
    readonly code: number | null;
    readonly message: string | null;
  };
  readonly actor: {
    readonly type: "root" | "token" | "anonymous" | "system";
    readonly id: string;
    readonly name: string;
    readonly session: string | null;
    readonly ip: string | null;
  };
  /** Method and path template. */
  readonly operation: string;
  readonly resource: { readonly type: string; readonly id: string; readonly path: string };
  readonly request_id: string;
  readonly metadata: { readonly user_agent: string | null; readonly forwarded_for: string | null };
  /** The input and the states of the resource, without secrets. */
  readonly request: unknown;
  readonly before: unknown;
  readonly after: unknown;
  readonly previous_hash: string;
  /** SHA-256 of the entry without this member. */
  readonly hash: string;
}

export interface AuditQuery {
  readonly since?: string | undefined;
  readonly before?: string | undefined;
  /** Id of a token, `root`, `anonymous` or `system`. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly outcome?: string | undefined;
  readonly resource_type?: string | undefined;
  readonly resource_id?: string | undefined;
  readonly request_id?: string | undefined;
}

export class AuditApi {
  readonly #transport: Transport;
  readonly #path: string;

  /** Without an account, the entries that belong to none, which only the root token reads. */
  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/audit_logs`;
  }

  /** Lists entries, newest first. */
  list(
    query: AuditQuery & { limit?: number | undefined; direction?: "asc" | "desc" | undefined } = {},
    options: RequestOptions = {},
  ): List<AuditEntry> {
    return new List(this.#transport, this.#path, { ...query }, options);
  }

  /** Resolves to a response with all entries, oldest first, one per line. */
  async export(
    query: AuditQuery & { format?: "ndjson" | "csv" | undefined } = {},
    options: RequestOptions = {},
  ): Promise<Response> {
    return this.#transport.raw("GET", `${this.#path}/export`, { query: { ...query }, ...options });
  }
}
