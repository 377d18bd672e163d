/** A gateway as the management interface shows it. */
import type { Gateway } from "@signalbox/client";

export type { Gateway } from "@signalbox/client";

export type GatewayChange = Partial<Omit<Gateway, "id" | "is_default" | "created_at" | "modified_at">>;
