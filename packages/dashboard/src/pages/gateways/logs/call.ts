/** A stored call as the log interface shows it. */
export type { Call } from "@signalbox/client";
