/** Routes and events in a few words. */
import type { RoutedEventState, RouteTarget, WebhookRoute } from "@signalbox/client";
import type { Tone } from "../../../components/badge.tsx";

export const EVENT_TONES: Readonly<Record<RoutedEventState, Tone>> = {
  scheduled: "neutral",
  queued: "accent",
  held: "warn",
  delivered: "good",
  failed: "bad",
  cancelled: "neutral",
  ignored: "neutral",
};

export const EVENT_STATES = Object.keys(EVENT_TONES) as readonly RoutedEventState[];

export function targetText(to: RouteTarget): string {
  if ("agent" in to) return `agent ${to.agent}`;
  if ("object" in to) return `object ${to.object}`;
  return "listen" in to ? "a listener" : to.url;
}

export function filterText({ when }: Pick<WebhookRoute, "when">): string {
  const parts = Object.keys(when ?? {});
  return parts.length === 0 ? "every delivery" : `filter on ${parts.join(", ")}`;
}
