import { changeSettings } from "./change.ts";
import { pathOf, type Query } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export type GuardrailPlace = "prompt" | "response";
export type GuardrailAction = "block" | "mask" | "flag";

interface RuleBase {
  readonly id: string;
  /** Default: both. */
  readonly on?: readonly GuardrailPlace[];
  readonly action: GuardrailAction;
  /** What follows if a text cannot be searched or judged. Default: block. */
  readonly on_failure?: "block" | "allow";
  /** What follows for pictures, sound and films. Default: allow. */
  readonly on_media?: "block" | "allow";
  /** What the log holds of a text that the rule found. Default: full. */
  readonly logs?: "full" | "masked";
  readonly enabled?: boolean;
}

interface LocalRule extends RuleBase {
  /** Texts that are no finding; `*` stands for any text. */
  readonly allow?: readonly string[];
}

interface JudgedRule extends RuleBase {
  readonly action: "block" | "flag";
  /** Milliseconds for a verdict. */
  readonly timeout_ms?: number;
  readonly stream?: "window" | "hold";
}

/** What a rule looks for in the texts of calls, and what follows. */
export type GuardrailRule =
  | (LocalRule & { readonly type: "regex"; readonly pattern: string })
  | (LocalRule & { readonly type: "words"; readonly words: readonly string[] })
  | (LocalRule & { readonly type: "pii" | "secrets"; readonly kinds?: readonly string[] })
  | (JudgedRule & {
      readonly type: "model";
      /** As `provider/model`. */
      readonly model: string;
      readonly format?: "guard" | "injection" | "moderation";
      readonly instructions?: string;
      readonly categories?: readonly string[];
      readonly threshold?: number;
    })
  | (JudgedRule & { readonly type: "webhook"; readonly url: string });

export interface GuardrailFinding {
  readonly rule: string;
  /** Who set the rule: `gateway`, `token`, `account`, `dlp`, `guardrails` or `call`. */
  readonly owner: string;
  readonly place: GuardrailPlace;
  readonly action: GuardrailAction;
  readonly kind: string;
  readonly count: number;
}

export interface GuardrailTrial {
  readonly action: GuardrailAction | null;
  /** With masks; null if the text would be blocked. */
  readonly text: string | null;
  readonly findings: readonly Pick<GuardrailFinding, "rule" | "action" | "kind" | "count">[];
}

/** What rules found in calls. */
export interface GuardrailFindings {
  /** Calls by the strictest action. */
  readonly block: number;
  readonly mask: number;
  readonly flag: number;
  readonly rules: readonly (GuardrailFinding & { readonly calls: number; readonly cost: number })[];
  readonly samples: readonly {
    readonly id: string;
    readonly gateway_id: string;
    readonly created_at: string;
    readonly action: GuardrailAction;
    readonly findings: readonly GuardrailFinding[];
  }[];
  /** Continues with earlier calls; null at the end. */
  readonly cursor: string | null;
}

export interface GuardrailCallTrial extends GuardrailFindings {
  /** Calls that were searched, and of these those with a body that is not stored as a whole. */
  readonly calls: number;
  readonly incomplete: number;
}

/** Which stored calls; also the filters of the list of calls, such as `start_date`. */
export interface StoredCallsQuery {
  readonly gateway_id?: string;
  /** ISO times. */
  readonly start_date?: string;
  readonly end_date?: string;
  /** Text in the prompt or the answer. */
  readonly q?: string;
  readonly cursor?: string;
  /** Calls that one request looks at. */
  readonly limit?: number;
  /** Calls that are shown. */
  readonly samples?: number;
}

interface Rules {
  readonly rules: readonly GuardrailRule[];
}

/** The guardrails of one account and of its gateways. Without a gateway: those of the account, which apply to all of its gateways. */
export class GuardrailsApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/ai-gateway`;
  }

  async rules(gatewayId?: string, options: RequestOptions = {}): Promise<readonly GuardrailRule[]> {
    return (await this.#transport.result<Rules>("GET", this.#pathOf(gatewayId), options)).rules;
  }

  async setRules(
    rules: readonly GuardrailRule[],
    gatewayId?: string,
    options: RequestOptions = {},
  ): Promise<readonly GuardrailRule[]> {
    const request = { body: { rules }, ...options };
    return (await this.#transport.result<Rules>("PUT", this.#pathOf(gatewayId), request)).rules;
  }

  /** Changes the rules; changes of other clients are kept. */
  async change(
    change: (rules: readonly GuardrailRule[]) => readonly GuardrailRule[],
    gatewayId?: string,
    options: RequestOptions = {},
  ): Promise<readonly GuardrailRule[]> {
    const toBody = ({ rules }: Rules) => ({ rules: change(rules) });
    return (await changeSettings<Rules>(this.#transport, "PUT", this.#pathOf(gatewayId), toBody, options))
      .rules;
  }

  /** What rules would do with a text. */
  tryText(
    rules: readonly GuardrailRule[],
    text: string,
    on: GuardrailPlace = "prompt",
    options: RequestOptions = {},
  ): Promise<GuardrailTrial> {
    const request = { body: { rules, text, on }, ...options };
    return this.#transport.result<GuardrailTrial>("POST", `${this.#path}/guardrails/try`, request);
  }

  /** What rules would have done with stored calls, newest first. */
  async tryCalls(
    rules: readonly GuardrailRule[],
    query: StoredCallsQuery = {},
    options: RequestOptions = {},
  ): Promise<GuardrailCallTrial> {
    const request = { body: { rules }, query: query as Query, ...options };
    const path = `${this.#path}/guardrails/try/calls`;
    const { result, info } = await this.#transport.request<Omit<GuardrailCallTrial, "cursor">>(
      "POST",
      path,
      request,
    );
    return { ...result, cursor: info.cursor ?? null };
  }

  /** What guardrails have found in stored calls, newest first. */
  async findings(query: StoredCallsQuery = {}, options: RequestOptions = {}): Promise<GuardrailFindings> {
    const request = { query: query as Query, ...options };
    const { result, info } = await this.#transport.request<Omit<GuardrailFindings, "cursor">>(
      "GET",
      `${this.#path}/guardrails/findings`,
      request,
    );
    return { ...result, cursor: info.cursor ?? null };
  }

  #pathOf(gatewayId: string | undefined): string {
    return gatewayId === undefined
      ? `${this.#path}/guardrails`
      : this.#path + pathOf`/gateways/${gatewayId}/guardrails`;
  }
}
