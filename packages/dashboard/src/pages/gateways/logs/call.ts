/** A call in the gateway log. */
export type { Call } from "@signalbox/client";
