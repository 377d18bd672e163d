/** Sources and deliveries as the management interface shows them. */
export interface Source {
  readonly name: string;
  readonly kind: string;
  /** One line: header and algorithm. */
  readonly scheme: string;
  readonly path: string;
  readonly agent: string;
  readonly secret_variable: string;
  /** How many are set. */
  readonly secrets: number;
  readonly window_seconds: number | null;
  readonly entity: readonly string[];
}

export type DeliveryStatus = "accepted" | "duplicate" | "rejected" | "failed";

export interface Delivery {
  readonly id: string;
  readonly source: string;
  readonly status: DeliveryStatus;
  readonly reason: string | null;
  readonly http_status: number;
  readonly received_at: string;
  readonly duration_ms: number;
  readonly delivery_id: string | null;
  readonly type: string | null;
  readonly title: string | null;
  readonly agent: string;
  readonly instance: string | null;
  readonly body_bytes: number;
}

export interface DeliveryDetail extends Delivery {
  readonly content_type: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly body_encoding: "utf8" | "base64" | null;
}
