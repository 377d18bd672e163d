import { useScope } from "../../session/session.ts";

/** What the session may read. The overview requests and links to nothing else. */
export interface Access {
  /** The gateway of a token that is bound to one; else null. */
  readonly gatewayId: string | null;
  readonly usage: boolean;
  /** Alerts and limits of the account: a token of one gateway may not read them. */
  readonly account: boolean;
  readonly tokens: boolean;
  readonly agents: boolean;
  readonly webhooks: boolean;
  readonly tags: boolean;
  readonly cluster: boolean;
}

export function useAccess(): Access {
  const { session } = useScope();
  const has = (permission: (typeof session.permissions)[number]) => session.permissions.includes(permission);
  const isUnbound = session.gateway_id === null;
  return {
    gatewayId: session.gateway_id,
    usage: has("gateway.read"),
    account: isUnbound && has("gateway.read"),
    tokens: isUnbound && has("tokens.edit"),
    agents: isUnbound && has("agents.read"),
    webhooks: isUnbound && has("webhooks.read"),
    tags: isUnbound && has("tags.read"),
    cluster: session.is_root,
  };
}
