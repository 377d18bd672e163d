/** What the main thread and the sender's thread say to each other. */
export interface SenderReceiver {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly format: "json" | "protobuf";
  readonly isCompressed: boolean;
  readonly timeoutMs: number;
  readonly mayBePrivate: boolean;
}

export interface SenderBatch {
  readonly id: number;
  readonly receiver: SenderReceiver;
  readonly message: "TracesData" | "MetricsData";
  /** OTLP/JSON. */
  readonly json: string;
}

export interface SenderReport {
  readonly id: number;
  /** Null when the receiver has accepted the batch. */
  readonly failure: string | null;
}
