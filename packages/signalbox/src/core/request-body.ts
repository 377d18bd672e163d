/** The body of a request, as the listener passes it on and the upstream client sends it. */
import type { Readable } from "node:stream";

/** A whole body is in memory and can be sent again; a streamed one can be sent once. */
export type RequestBody =
  | { readonly kind: "none" }
  | { readonly kind: "whole"; readonly bytes: Buffer }
  | {
      readonly kind: "streamed";
      /** The bytes that have arrived. */
      readonly start: Buffer;
      /** The bytes still to come; paused until they are read. */
      readonly rest: Readable;
      /** Of the whole body; null when it was not declared. A request with it is sent in chunks. */
      readonly length: number | null;
    };

export const NO_BODY: RequestBody = { kind: "none" };
