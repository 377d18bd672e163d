/**
 * The feed of tag changes of an account, implemented by the tags area. It is durable, and readers can resume it at a position.
 *
 * Invariants:
 * 1. Changes are read in commit order, each exactly once. Every acknowledged change is in the feed.
 * 2. Positions only increase.
 * 3. A reader whose position was pruned receives an error.
 */
export interface TagChange {
  /** Position in the feed of the account; the `after` of the next read. */
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
  /** Null if the resource had (or has) no tags. */
  readonly before: Readonly<Record<string, string>> | null;
  readonly after: Readonly<Record<string, string>> | null;
}

export interface TagFeed {
  /** Returns the position of the newest change; 0 if there is none. */
  newestPosition(accountId: string): Promise<number>;
  /**
   * Yields the changes after a position, then new changes as they are committed. Ends when the signal aborts. Throws `tags_changes_expired` if
   * changes after the position were pruned.
   */
  follow(accountId: string, after: number, signal: AbortSignal): AsyncIterable<TagChange>;
}
