/**
 * What the other areas may ask about tags: their lists accept `tag` filters, and usage can be grouped by a tag's value.
 * The tags area implements it; filters are the texts of the `tag` query parameters and throw the tags area's own errors.
 */
export interface TagLookup {
  /** The ids of `type` in the account that match every filter, or null when there is no filter to apply. */
  matchingIds(
    accountId: string,
    type: string,
    filters: readonly string[],
  ): Promise<ReadonlySet<string> | null>;
  /** Value of one tag key for each of the ids that carries it. */
  valuesOf(accountId: string, type: string, key: string): Promise<ReadonlyMap<string, string>>;
}
