/** Management routes of issues. */
import { z } from "zod";
import { defineRoute, type Route as ManagementRoute } from "../../http/route.ts";
import { type Issue, ISSUE_STATES } from "./issues.ts";
import type { Routing } from "./routing.ts";

const ISSUES = "/accounts/{account_id}/webhooks/issues";
const PAGE_SIZE = 100;

const issueResult = z.object({
  id: z.string(),
  source: z.string(),
  route: z.string(),
  /** Without ids and numbers, which differ from event to event. */
  cause: z.string(),
  state: z.enum(ISSUE_STATES),
  /** Events that failed since it was opened. */
  count: z.int(),
  first_at: z.iso.datetime(),
  last_at: z.iso.datetime(),
  /** The event that failed last. */
  sample: z.string(),
  resolved_at: z.iso.datetime().nullable(),
});

export function issueRoutes({ routing }: { readonly routing: Routing }): ManagementRoute[] {
  const { issues } = routing;
  const change = (action: "acknowledge" | "resolve", summary: string) =>
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${ISSUES}/{issue_id}/${action}`,
      access: "webhooks.edit",
      summary,
      result: issueResult,
      handler: async ({ params }) => {
        const state = action === "acknowledge" ? "acknowledged" : "resolved";
        return {
          result: show(await issues.setState(params["account_id"] ?? "", params["issue_id"] ?? "", state)),
        };
      },
    });
  return [
    defineRoute({
      method: "GET",
      path: ISSUES,
      access: "webhooks.read",
      summary:
        "List issues: failed events of webhook routes, grouped by route and cause; those that occurred last come first.",
      query: z.strictObject({
        source: z.string().max(64).optional(),
        route: z.string().max(64).optional(),
        state: z.enum(ISSUE_STATES).optional(),
        limit: z.coerce.number().int().min(1).max(PAGE_SIZE).default(PAGE_SIZE),
      }),
      result: z.array(issueResult),
      handler: async ({ params, query: { limit, ...query } }) => {
        const found = await issues.list(params.account_id, query, limit);
        return { result: found.map(show), resultInfo: { count: found.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${ISSUES}/{issue_id}`,
      access: "webhooks.read",
      summary: "Read one issue.",
      result: issueResult,
      handler: async ({ params }) => ({
        result: show(await issues.find(params.account_id, params.issue_id)),
      }),
    }),
    change("acknowledge", "Acknowledge an issue: somebody works on it."),
    change("resolve", "Resolve an issue; another event that fails for its cause opens it again."),
  ];
}

function show(issue: Issue): z.input<typeof issueResult> {
  return {
    id: issue.id,
    source: issue.source,
    route: issue.name,
    cause: issue.cause,
    state: issue.state,
    count: issue.count,
    first_at: new Date(issue.firstAt).toISOString(),
    last_at: new Date(issue.lastAt).toISOString(),
    sample: issue.sample,
    resolved_at: issue.resolvedAt === null ? null : new Date(issue.resolvedAt).toISOString(),
  };
}
