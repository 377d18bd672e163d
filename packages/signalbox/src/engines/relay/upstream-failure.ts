/** Why an upstream call gave no whole response. `timeout` covers both "no first byte" and "stopped in the middle". */
export type UpstreamFailureKind = "unreachable" | "broken" | "timeout";

export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly kind: UpstreamFailureKind;

  constructor(kind: UpstreamFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}
