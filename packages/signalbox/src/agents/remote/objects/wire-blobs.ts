/** Blobs and forms on the wire. Their bytes are read before the value that contains them reaches the program, because a `Blob` has a size. */
import type { Finds, Reference } from "./references.ts";
import { readableOf } from "./wire-streams.ts";

export interface BlobParts {
  readonly type: string;
  readonly body: Reference;
  /** Null unless it is a `File`. */
  readonly file: { readonly name: string; readonly lastModified: number } | null;
}

export type FormEntry = [string, string | BlobParts];

export function describeBlob(blob: Blob, offer: (body: ReadableStream) => Reference): BlobParts {
  const file = blob instanceof File ? { name: blob.name, lastModified: blob.lastModified } : null;
  return { type: blob.type, body: offer(blob.stream()), file };
}

export async function blobOf({ type, body, file }: BlobParts, finds: Finds): Promise<Blob> {
  const bytes = new Uint8Array(await new Response(readableOf(finds.target(body))).arrayBuffer());
  return file === null
    ? new Blob([bytes], { type })
    : new File([bytes], file.name, { type, lastModified: file.lastModified });
}

export async function formOf(entries: readonly FormEntry[], finds: Finds): Promise<FormData> {
  const form = new FormData();
  const values = await Promise.all(
    entries.map(async ([, value]) => (typeof value === "string" ? value : blobOf(value, finds))),
  );
  for (const [i, [name]] of entries.entries()) {
    const value = values[i] ?? "";
    if (typeof value === "string") form.append(name, value);
    else form.append(name, value);
  }
  return form;
}
