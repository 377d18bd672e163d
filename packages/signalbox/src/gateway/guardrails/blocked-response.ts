/** Why an exchange ends whose response a rule refuses. */
import type { SignalboxError } from "@signalbox/protocol";
import { type ResponseHead, UpstreamFailure, type UsageTap } from "../../engines/relay/index.ts";

/** The exchange ends because a rule refuses the response, or because this server cannot search it. What it used is charged. */
export class BlockedResponse extends UpstreamFailure {
  readonly error: SignalboxError;
  readonly head: ResponseHead;
  readonly tap: UsageTap;
  /** What arrived and was not passed on. */
  readonly withheldBytes: number;

  constructor(error: SignalboxError, head: ResponseHead, tap: UsageTap, withheldBytes: number) {
    super("refused", error.message, error);
    this.error = error;
    this.head = head;
    this.tap = tap;
    this.withheldBytes = withheldBytes;
  }
}
