/** `static options` of an agent class. */
import type { RetryOptions } from "../work/retry-options.ts";

export interface AgentOptions {
  /**
   * Lets a turn start while another one is at an await, like plain asynchronous code. Default false: turns run one after another.
   */
  readonly interleave?: boolean;
  /** Sends the identity frame to new connections. Default true. */
  readonly sendIdentityOnConnect?: boolean;
  /**
   * Records the turns of instances with their payloads and state changes, for a day, where `agents.read` may see them. Default true; false for a class
   * whose payloads must not be stored.
   */
  readonly timeline?: boolean;
  /** Defaults of `queue`, `schedule`, `scheduleEvery` and `retry`. */
  readonly retry?: RetryOptions;
}
