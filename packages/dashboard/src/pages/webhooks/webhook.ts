/** Sources and deliveries as the management interface shows them. */
export type { Delivery, DeliveryDetail, DeliveryStatus, Source } from "@signalbox/client";
