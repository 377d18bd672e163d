/** A token in the management API. */
export type { CreatedToken as NewToken, Token } from "@signalbox/client";
