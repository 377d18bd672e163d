/** The mixed load of a soak: calls, webhooks, changes of tags, and what an open dashboard asks for. */
import { createHmac } from "node:crypto";
import { TagData } from "../support/tag-data.ts";
import type { PacedKind } from "./paced-load.ts";

export const ROOT_TOKEN = "root-token-of-the-soak";
export const SECRET = "secret-of-the-soak";
const HEADERS = { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" };
/** More than fit into memory at once, so that instances wake and leave all the time. */
const ENTITIES = 2000;
const RESOURCES = 10_000;
const USERS = 500;

const ACCOUNT = "/accounts/default";
/** In turn, as the dashboard polls them. */
const PAGES = [
  `${ACCOUNT}/ai-gateway/gateways/default/logs`,
  `${ACCOUNT}/ai-gateway/usage?group_by=hour`,
  `${ACCOUNT}/ai-gateway/usage?group_by=user`,
  `${ACCOUNT}/webhooks/deliveries/summary`,
  `${ACCOUNT}/webhooks/deliveries?status=failed`,
  `${ACCOUNT}/agents/webhook-agent/instances?order=last_active`,
  `${ACCOUNT}/tags/resources?tag=env=prod&total=exact`,
  `${ACCOUNT}/audit_logs`,
];

/** Rates are per second at `factor` 1: half of a core of a small machine. */
export function mixedKinds(factor: number): PacedKind[] {
  const data = new TagData(RESOURCES);
  let count = 0;
  return [
    {
      name: "calls",
      perSecond: 100 * factor,
      next() {
        const metadata = JSON.stringify({ user: `user-${count++ % USERS}` });
        return {
          method: "POST",
          path: "/v1/default/default/echo/chat/completions",
          headers: { ...HEADERS, authorization: "Bearer key-of-a-provider", "gw-aig-metadata": metadata },
          body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: `question ${count}` }] }),
        };
      },
    },
    {
      name: "webhooks",
      perSecond: 40 * factor,
      next() {
        const body = JSON.stringify({ type: "reading", value: count++ });
        const signature = createHmac("sha256", SECRET).update(body).digest("hex");
        return {
          method: "POST",
          path: `/webhooks/device-${count % ENTITIES}`,
          headers: {
            "content-type": "application/json",
            "x-signature": `sha256=${signature}`,
            "x-event-id": `soak-${count}`,
          },
          body,
        };
      },
    },
    {
      name: "tags",
      perSecond: 20 * factor,
      next() {
        const { type, id } = data.randomName();
        const tags = Object.fromEntries(data.tags());
        const body = JSON.stringify({ resource_type: type, resource_id: id, tags });
        return { method: "PUT", path: `${ACCOUNT}/tags`, headers: HEADERS, body };
      },
    },
    {
      name: "lists",
      perSecond: 2 * factor,
      next: () => ({ method: "GET", path: PAGES[count++ % PAGES.length] ?? "", headers: HEADERS }),
    },
  ];
}
