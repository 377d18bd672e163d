/** The beginning of a response whose sender is not trusted: of what it sends, never more than `keepBytes` are in memory. */
export interface ResponseStart {
  readonly bytes: Buffer;
  /** False when the response is longer. */
  readonly isWhole: boolean;
}

/** Of the rest of the response, up to `readBytes` are read and dropped; after that it is broken off. */
export async function readStart(
  { body }: Response,
  keepBytes: number,
  readBytes = keepBytes,
): Promise<ResponseStart> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = (body as ReadableStream<Uint8Array> | null)?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    if (size < keepBytes) pieces.push(value.subarray(0, keepBytes - size));
    size += value.length;
    if (size <= readBytes) continue;
    // The sender may not notice, or not end: no code waits for it.
    reader.cancel().catch(() => undefined);
    break;
  }
  return { bytes: Buffer.concat(pieces), isWhole: size <= keepBytes };
}
