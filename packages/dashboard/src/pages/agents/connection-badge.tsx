import type { ConnectionStatus } from "@signalbox/client";
import { Badge, type Tone } from "../../components/badge.tsx";

const LOOKS: Readonly<Record<ConnectionStatus, readonly [Tone, string]>> = {
  idle: ["neutral", "not connected"],
  connecting: ["warn", "connecting"],
  open: ["good", "live"],
  waiting: ["warn", "reconnecting"],
  closed: ["bad", "closed"],
};

export function ConnectionBadge({ status }: { readonly status: ConnectionStatus }) {
  const [tone, text] = LOOKS[status];
  return (
    <span role="status">
      <Badge tone={tone}>{text}</Badge>
    </span>
  );
}
