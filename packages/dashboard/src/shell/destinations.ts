/** Every page that can be opened without naming anything, and which permission it takes. */
import type { Permission } from "@signalbox/protocol";
import type { Session } from "../session/session.ts";

export interface Destination {
  /** Path below the account. */
  readonly page: readonly string[];
  readonly title: string;
  readonly needs: Permission | null;
  readonly isForRoot?: true;
  /** Sessions of a token that is restricted to one gateway may read it. */
  readonly isForOneGateway?: true;
  /** Words that people search for and that the title does not have. */
  readonly words?: string;
  /** The second key after `g`. */
  readonly key?: string;
}

export const DESTINATIONS: readonly Destination[] = [
  { page: [], title: "Overview", needs: null, isForOneGateway: true, key: "o", words: "home health" },
  { page: ["gateways"], title: "Gateways", needs: "gateway.read", isForOneGateway: true, key: "g" },
  {
    page: ["logs"],
    title: "Logs",
    needs: "gateway.read",
    isForOneGateway: true,
    key: "l",
    words: "calls requests search export",
  },
  {
    page: ["usage"],
    title: "Usage",
    needs: "gateway.read",
    isForOneGateway: true,
    key: "u",
    words: "analytics statistics cost tokens charts",
  },
  {
    page: ["users"],
    title: "Users",
    needs: "gateway.read",
    isForOneGateway: true,
    words: "who customers cost",
  },
  {
    page: ["sessions"],
    title: "Sessions",
    needs: "gateway.read",
    isForOneGateway: true,
    words: "conversations threads chats traces",
  },
  { page: ["limits"], title: "Limits", needs: "gateway.read", words: "budgets spend" },
  {
    page: ["guardrails"],
    title: "Guardrails",
    needs: "gateway.read",
    isForOneGateway: true,
    words: "rules pii secrets mask block moderation dlp",
  },
  { page: ["provider-keys"], title: "Provider keys", needs: "gateway.read", words: "api keys secrets" },
  { page: ["prices"], title: "Prices", needs: "gateway.read", words: "cost" },
  { page: ["providers"], title: "Custom providers", needs: "gateway.read", words: "own models endpoints" },
  { page: ["agents"], title: "Agents", needs: "agents.read", key: "a", words: "instances" },
  {
    page: ["problems"],
    title: "Problems of instances",
    needs: "agents.read",
    words: "dead letters stuck errors",
  },
  { page: ["webhooks"], title: "Webhooks", needs: "webhooks.read", key: "w", words: "sources" },
  {
    page: ["webhooks", "deliveries"],
    title: "Deliveries",
    needs: "webhooks.read",
    key: "d",
    words: "webhooks events",
  },
  { page: ["alerts"], title: "Alerts", needs: "gateway.read", words: "notifications" },
  { page: ["tags"], title: "Tags", needs: "tags.read", key: "t", words: "resources" },
  { page: ["tags", "keys"], title: "Tag keys", needs: "tags.read", words: "values" },
  { page: ["tags", "changes"], title: "Tag changes", needs: "tags.read", words: "history" },
  { page: ["tags", "jobs"], title: "Tag jobs", needs: "tags.read", words: "bulk background progress" },
  { page: ["tokens"], title: "Tokens", needs: "tokens.edit", key: "k", words: "api keys access permissions" },
  { page: ["audit"], title: "Audit log", needs: "audit.read", words: "changes history who" },
  { page: ["cluster"], title: "Cluster", needs: null, isForRoot: true, words: "nodes" },
];

export function isAllowed({ needs, isForRoot, isForOneGateway }: Destination, session: Session): boolean {
  if (session.gateway_id !== null && isForOneGateway !== true) return false;
  return (isForRoot !== true || session.is_root) && (needs === null || session.permissions.includes(needs));
}

/** The title of the first page of an area, which is the first part of a path below the account. */
export function areaTitle(area: string): string {
  return findArea(area)?.title ?? "Signalbox";
}

/** Whether the session may open the page that is directly below the account. */
export function isPageAllowed(page: string, session: Session): boolean {
  const destination = findArea(page);
  return destination !== undefined && isAllowed(destination, session);
}

function findArea(area: string): Destination | undefined {
  return DESTINATIONS.find(({ page }) => (page[0] ?? "") === area);
}
