import type { Usage as UsageFigures } from "@signalbox/client";

/** What the charts show of the usage figures; group fields are there when grouped by. */
export type Usage = Omit<UsageFigures, "durations" | "tokens_in_cached" | "tokens_out_reasoning">;
