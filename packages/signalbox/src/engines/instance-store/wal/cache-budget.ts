/**
 * Limits the number of large page caches. An instance that writes much rereads its own pages if they do not fit into the cache, but a thousand large
 * caches would be most of the memory of the process. So the first busy instances get a large cache, and keep it until they are closed.
 */
const LARGE_CACHES = 64;

export class CacheBudget {
  #left = LARGE_CACHES;

  /** True if the caller may use a large cache; the caller gives it back with `release`. */
  acquire(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  release(): void {
    this.#left += 1;
  }
}
