import type { ConnectionStatus } from "@signalbox/client";
import { Badge, type Tone } from "../../components/badge.tsx";

const BADGES: Readonly<Record<ConnectionStatus, readonly [Tone, string]>> = {
  idle: ["neutral", "disconnected"],
  connecting: ["warn", "connecting"],
  open: ["good", "live"],
  waiting: ["warn", "reconnecting"],
  closed: ["bad", "closed"],
};

export function ConnectionBadge({ status }: { readonly status: ConnectionStatus }) {
  const [tone, text] = BADGES[status];
  return (
    <span role="status">
      <Badge tone={tone}>{text}</Badge>
    </span>
  );
}
