/**
 * Who may have a large page cache. An instance that writes much reads its own pages back all the time if they do not fit, but a thousand large
 * caches would be most of the memory of the process; so the first few to be busy get one, until they leave memory.
 */
const LARGE_CACHES = 64;

export class CacheBudget {
  #left = LARGE_CACHES;

  /** True when the caller may have one; it gives it back when it closes. */
  take(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  giveBack(): void {
    this.#left += 1;
  }
}
