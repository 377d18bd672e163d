import { kebabCase } from "@signalbox/protocol";
import { type Instance, InstanceApi } from "./instance.ts";
import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

/** An agent class loaded by the service. */
export interface AgentClass {
  /** Kebab-case, as in URLs. */
  readonly name: string;
  readonly class_name: string;
  /** An object is a class of a worker program. */
  readonly kind: "agent" | "object";
  readonly is_built_in: boolean;
  readonly callable: readonly {
    readonly name: string;
    readonly description: string | null;
    readonly streaming: boolean;
    /** Null if the names are not known. */
    readonly parameters:
      | readonly { readonly name: string; readonly optional: boolean; readonly rest: boolean }[]
      | null;
  }[];
  readonly instance_count: number;
  /** Turns of all instances in each of the last 60 minutes, the current one last. */
  readonly turns: readonly number[];
  readonly failed_turns: number;
  /** 95th percentile of their durations; null without turns. */
  readonly turn_p95_ms: number | null;
}

export type InstanceProblem = "dead_letters" | "retrying" | "stuck" | "error";

export interface InstanceQuery {
  readonly search?: string | undefined;
  readonly tag?: readonly string[] | undefined;
  /** Names with numbers in them are ordered by the numbers, if at most 5,000 instances match. The other orders begin with the largest. Default: name. */
  readonly order?: "name" | "last_active" | "dead_letters" | "queued" | undefined;
  readonly problem?: InstanceProblem | "any" | undefined;
  /** A turn that runs longer is stuck. Default: 10. */
  readonly stuck_seconds?: number | undefined;
  /** Errors of this time count as a problem. Default: a day. */
  readonly within?: number | undefined;
  readonly limit?: number | undefined;
}

export interface ProblemQuery extends Pick<InstanceQuery, "problem" | "stuck_seconds" | "within" | "limit"> {
  readonly agent?: string | undefined;
  readonly cursor?: string | undefined;
}

export interface ProblemInstance extends Instance {
  readonly problems: readonly InstanceProblem[];
}

export interface ProblemTotals {
  readonly instances: number;
  readonly dead_letters: number;
  readonly dead_letter_instances: number;
  readonly retrying: number;
  readonly retrying_instances: number;
  readonly stuck: number;
  /** Instances with an error within the time. */
  readonly errors: number;
}

export interface Problems {
  /** Of all instances of the account, or of the agent, whatever the page shows. */
  readonly totals: ProblemTotals;
  /** The same of each agent that has problems. */
  readonly by_agent: readonly (ProblemTotals & { readonly agent: string })[];
  /** Stuck ones first, then by the time of the last error. */
  readonly instances: readonly ProblemInstance[];
}

/** One step of replaying the dead letters of all instances of an agent. */
export interface BulkReplay {
  readonly replayed: number;
  /** Instances that this step has visited. */
  readonly instances: number;
  readonly failed: readonly { readonly name: string; readonly error: string }[];
  /** Instances with dead letters that are still to be visited. */
  readonly remaining_instances: number;
  /** Continues the replay; null at the end. */
  readonly cursor: string | null;
}

export class AgentsApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/agents`;
  }

  list(options: RequestOptions = {}): List<AgentClass> {
    return new List(this.#transport, this.#path, {}, options);
  }

  /** Lists instances by name. `search` matches a substring of the name; `tag` takes filters of the tagging interface. */
  instances(agent: string, query: InstanceQuery = {}, options: RequestOptions = {}): List<Instance> {
    const path = this.#path + pathOf`/${kebabCase(agent)}/instances`;
    return new List(this.#transport, path, { ...query }, options);
  }

  /** Instances of all agents that have dead letters, failing queue items, a stuck turn or a recent error, with totals. */
  async problems(
    query: ProblemQuery = {},
    options: RequestOptions = {},
  ): Promise<Problems & { readonly cursor: string | null }> {
    const { result, info } = await this.#transport.request<Problems>("GET", `${this.#path}/problems`, {
      query: { ...query },
      ...options,
    });
    return { ...result, cursor: info.cursor ?? null };
  }

  /** Returns dead letters of all instances of an agent to their queues, a bounded number of instances with each call. */
  async replayDeadLetters(
    agent: string,
    step: { readonly limit?: number | undefined; readonly cursor?: string | undefined } = {},
    options: RequestOptions = {},
  ): Promise<BulkReplay> {
    const path = this.#path + pathOf`/${kebabCase(agent)}/dead-letters/replay`;
    return this.#transport.result<BulkReplay>("POST", path, { body: step, ...options });
  }

  instance(agent: string, name: string): InstanceApi {
    return new InstanceApi(this.#transport, this.#path + pathOf`/${kebabCase(agent)}/instances/${name}`);
  }
}
