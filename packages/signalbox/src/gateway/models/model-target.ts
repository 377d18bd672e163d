/** A model that a call tries: the one that its name means, or one of a route. */
import type { CallOptions } from "../step/call-options.ts";
import type { Provider } from "../providers/provider.ts";

export interface ModelTarget {
  readonly provider: Provider;
  /** The name of the model at the provider. */
  readonly model: string;
  /** Whether the caller wrote the provider; a caller's own key is then meant for this provider. */
  readonly isExplicit: boolean;
  /** Options of this attempt only; they precede those of the call. */
  readonly options?: CallOptions;
}
