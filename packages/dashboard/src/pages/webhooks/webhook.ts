/** Sources and deliveries in the management API. */
export type { Delivery, DeliveryDetail, DeliveryStatus, Source } from "@signalbox/client";
