/**
 * Lengths of bodies that the server knows by itself: of files, of what `fetch` received, of a `FixedLengthStream`. The `content-length` of a program's response is
 * only what the program says. The originals' runtime ignores it, so programs change a body and keep the headers of the one they received.
 */
const lengths = new WeakMap<ReadableStream, number>();

export function knowLength(body: ReadableStream, length: number): void {
  if (Number.isSafeInteger(length) && length >= 0) lengths.set(body, length);
}

/** Null if it is not known. */
export function lengthOf(body: ReadableStream): number | null {
  return lengths.get(body) ?? null;
}
