/**
 * A request body on its way upstream. Up to a limit it is wholly in memory, so that it can be sent again; a larger one is its
 * beginning in memory and the rest still coming from the client, which can be sent once.
 */
import type { Readable } from "node:stream";

export type RequestBody =
  | { readonly kind: "none" }
  | { readonly kind: "whole"; readonly bytes: Buffer }
  | {
      readonly kind: "streamed";
      readonly start: Buffer;
      readonly rest: Readable;
      /** Total length as the client declared it; null when it sends chunks. */
      readonly length: number | null;
    };

export const NO_BODY: RequestBody = { kind: "none" };
