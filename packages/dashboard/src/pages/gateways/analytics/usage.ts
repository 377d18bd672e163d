import type { Usage as ApiUsage } from "@signalbox/client";

/** The fields of a usage row that the charts use. A group field is present if the query groups by it. */
export type Usage = Omit<ApiUsage, "durations" | "tokens_in_cached" | "tokens_out_reasoning">;
