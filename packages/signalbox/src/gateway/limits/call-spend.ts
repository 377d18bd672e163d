/** The usage and the cost of a call. `call/measure-call.ts` determines them. */
import type { Usage } from "../../engines/relay/index.ts";

/**
 * `reported`: by the provider. `estimated`: from the request and from what of the response went through. `unknown`: nothing can be said,
 * as for a picture or a sound without usage. `none`: the call used nothing.
 */
export type UsageState = "reported" | "estimated" | "unknown" | "none";

export interface CallSpend {
  readonly state: UsageState;
  readonly usage: Usage;
  /** As the request names it, or else the response. */
  readonly model: string;
  /** The model that the response names; null when it names none, or was not asked. */
  readonly named: string | null;
  /** Dollars; null when the price or the usage is unknown. */
  readonly cost: number | null;
  readonly isCostEstimated: boolean;
  readonly isCustomCost: boolean;
}
