/** Settles like `work`, or rejects with the result of `expired` after the timeout. The work is not cancelled. */
export function within<T>(work: Promise<T>, timeoutMs: number, expired: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(expired()), timeoutMs);
  });
  return Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}
