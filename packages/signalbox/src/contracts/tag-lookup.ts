/**
 * Queries of other areas to the tags area: lists accept `tag` filters, and usage can be grouped by the value of a tag. A filter is the text of a
 * `tag` query parameter; an invalid filter throws an error of the tags area.
 */
export interface TagLookup {
  /** Returns the ids of the resources of `type` that match all filters; null if there is no filter. */
  matchingIds(
    accountId: string,
    type: string,
    filters: readonly string[],
  ): Promise<ReadonlySet<string> | null>;
  /** Returns the values of a tag key by resource id, for resources that have it. */
  valuesOf(accountId: string, type: string, key: string): Promise<ReadonlyMap<string, string>>;
}
