/**
 * What the tags area offers to whoever wants to act on changes of tags: a durable feed per account that can be left and resumed.
 *
 * Invariants: changes come in the order they were made, each once, none is skipped; what is read is on the books (a change that was
 * answered to its author is in the feed). Positions only grow. A reader that comes back after its position has been pruned is told so.
 */
export interface TagChange {
  /** Position in the account's feed; read on from here with `after`. */
  readonly position: number;
  readonly accountId: string;
  readonly resource: {
    readonly type: string;
    readonly id: string;
    readonly zoneId: string;
    readonly parentId: string;
    readonly name: string;
  };
  readonly action: "set" | "patch" | "delete" | "resource_deleted";
  /** `root`, `token:<id>` or `system`. */
  readonly actor: string;
  /** Milliseconds since the epoch. */
  readonly changedAt: number;
  /** Null: no record before (or after). */
  readonly before: Readonly<Record<string, string>> | null;
  readonly after: Readonly<Record<string, string>> | null;
}

export interface TagFeed {
  /** The position of the newest change; 0 when there was none. */
  newestPosition(accountId: string): Promise<number>;
  /**
   * Yields the changes after a position, then waits for new ones until the signal aborts, and ends then.
   * Throws `tags_changes_expired` when changes after the position are no longer kept.
   */
  follow(accountId: string, after: number, signal: AbortSignal): AsyncIterable<TagChange>;
}
