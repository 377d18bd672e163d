import { Badge, type Tone } from "../../components/badge.tsx";
import type { WatchStatus } from "./use-activity.ts";

const BADGES: Readonly<Record<WatchStatus, readonly [Tone, string]>> = {
  connecting: ["neutral", "connecting"],
  live: ["good", "live updates"],
  reconnecting: ["warn", "reconnecting"],
};

/** Whether the page shows changes of the instance as they occur. */
export function WatchBadge({ status }: { readonly status: WatchStatus }) {
  const [tone, text] = BADGES[status];
  return (
    <span role="status">
      <Badge tone={tone}>{text}</Badge>
    </span>
  );
}
