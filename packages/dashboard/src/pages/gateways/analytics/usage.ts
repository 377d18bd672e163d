/** Usage figures as the management interface gives them; group fields are there when grouped by. */
export interface Usage {
  readonly hour?: string;
  readonly day?: string;
  readonly gateway_id?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly tag?: string | null;
  readonly calls: number;
  readonly errors: number;
  readonly cached: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly cost: number;
  readonly duration_avg: number | null;
  readonly duration_p50: number | null;
  readonly duration_p95: number | null;
  readonly duration_p99: number | null;
}
