/** A stored call as the log interface shows it. */
export interface Call {
  readonly id: string;
  readonly created_at: string;
  readonly provider: string;
  readonly model: string;
  readonly path: string;
  readonly method: string;
  readonly duration: number;
  readonly time_to_first_byte: number | null;
  readonly request_type: string;
  readonly request_content_type: string;
  readonly response_content_type: string;
  readonly status_code: number;
  readonly success: boolean;
  readonly cached: boolean;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly tokens_in_cached: number;
  readonly tokens_out_reasoning: number;
  readonly cost?: number;
  readonly metadata?: string;
  readonly step: number;
  readonly event_id: string | null;
  readonly user_agent: string;
  readonly authentication: boolean;
  readonly feedback: number | null;
  readonly request_size: number;
  readonly response_size: number;
}
