/** What the main thread and the sender's thread say to each other. */
export interface SenderReceiver {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly format: "json" | "protobuf";
  readonly isCompressed: boolean;
  readonly timeoutMs: number;
  readonly mayBePrivate: boolean;
}

/** What stands around spans and metrics; each is OTLP/JSON. */
export interface SenderFrame {
  readonly resource: string;
  readonly scope: string;
  readonly schemaUrl: string;
}

export type SenderMessage =
  /** Texts that later batches name by their number. */
  { readonly kind: "texts"; readonly texts: readonly string[] } | SenderBatch;

export type SenderBatch = {
  readonly id: number;
  readonly receiver: SenderReceiver;
  readonly frame: SenderFrame;
} & (
  | { readonly kind: "spans"; readonly numbers: Float64Array<ArrayBuffer>; readonly texts: readonly string[] }
  /** `json` are the elements of `metrics`. */
  | { readonly kind: "metrics"; readonly json: string }
);

export interface SenderReport {
  readonly id: number;
  /** Null when the receiver has accepted the batch. */
  readonly failure: string | null;
}
