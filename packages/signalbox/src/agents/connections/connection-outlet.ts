/** What a connection uses of the instance that it belongs to. */
export interface ConnectionLimits {
  /** Bytes that may be buffered for one slow reader. */
  readonly maxBufferedBytes: number;
}

/** Where the connections of one instance send through. */
export interface ConnectionOutlet {
  readonly limits: ConnectionLimits;
  /** Calls back when the output may leave; never if the running turn is rolled back. */
  output(release: () => void): void;
  /** Keeps the instance in memory until the returned function is called. */
  hold(): () => void;
}
