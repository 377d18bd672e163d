/** What a call may take of what all calls have in common: the part of its caller. */
export interface CallShare {
  /** Counts memory for the call until its response has ended; false when the part has no room. */
  holdMemory(bytes: number): boolean;
  /** Calls back when a body of that length may be parsed and translated: at once, or when the long bodies before it have had their turns. */
  beginWork(bytes: number, piece: () => void): void;
}
