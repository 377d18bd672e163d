/** What areas report to alerts. The slot is empty while no rule exists, so that nothing is reported for nothing. */
export interface EndedCall {
  readonly accountId: string;
  readonly gatewayId: string;
  readonly provider: string;
  readonly isFailed: boolean;
  readonly durationMs: number;
  /** US dollars; 0 when it is not known. */
  readonly cost: number;
}

export interface AlertFeed {
  call(call: EndedCall): void;
  /** Guardrails found something in a call: the ids of the rules, each once. */
  guardrails(accountId: string, gatewayId: string, rules: readonly string[]): void;
  delivery(accountId: string, source: string, isFailed: boolean): void;
  /** A webhook route was paused because of its receiver. */
  routePaused(accountId: string, source: string): void;
  /** Events of a webhook route fail for a cause for which none had failed. */
  issueOpened(accountId: string, source: string): void;
  deadLetter(accountId: string, agent: string): void;
}

export interface AlertFeedSlot {
  readonly current: AlertFeed | null;
}
