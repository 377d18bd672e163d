/** Waits for somebody else's promise, but not for ever: then it rejects with what `expired` makes. The work itself goes on unheard. */
export function within<T>(work: Promise<T>, timeoutMs: number, expired: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(expired()), timeoutMs);
  });
  return Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}
