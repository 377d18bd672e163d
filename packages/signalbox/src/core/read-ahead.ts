/** Reads that are begun before their results are wanted, so that the next result is often there. */

/** Yields the results in the order of the items; at most `count` reads run or wait to be taken. When it ends, whatever the reason, no read runs. */
export async function* readAhead<T, R>(
  items: Iterable<T>,
  count: number,
  read: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  try {
    for (const item of items) {
      const reading = read(item);
      // The reader receives the rejection in its turn; until then it must not count as unhandled.
      reading.catch(() => undefined);
      running.push(reading);
      if (running.length >= count) yield await (running.shift() as Promise<R>);
    }
    while (running.length > 0) yield await (running.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(running);
  }
}
