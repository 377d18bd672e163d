/** A gateway in the management API. */
import type { Gateway } from "@signalbox/client";

export type { Gateway } from "@signalbox/client";

export type GatewayChange = Partial<Omit<Gateway, "id" | "is_default" | "created_at" | "modified_at">>;
