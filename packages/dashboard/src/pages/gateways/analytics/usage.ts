/** A usage row: a group field is present if the query groups by it. */
export type { Usage } from "@signalbox/client";
