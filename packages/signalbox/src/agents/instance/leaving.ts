/** How an instance left memory, for the directory. */
export interface Leaving {
  /** Resolves when a successor may open the database. */
  readonly closed: Promise<void>;
  /** True, once it is closed, when nothing that is stored is worth keeping: the instance is removed. */
  readonly isDisposable: () => boolean;
  /** When the instance must be woken at the latest; null for never. */
  readonly wakeAt: number | null;
  /** The instance could not start, or its storage failed. */
  readonly hasFailed: boolean;
}
