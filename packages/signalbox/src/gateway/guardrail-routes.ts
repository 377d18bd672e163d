/** Management of guardrails: the rules of a gateway, the rules of an account, and a trial of rules on a text. Tokens have theirs in their policy. */
import { z } from "zod";
import { type GuardrailRule, guardrailRules } from "../accounts/index.ts";
import { entityTag, requireMatch } from "../core/entity-tag.ts";
import type { LongWork } from "../core/long-work.ts";
import { defineRoute, type Reply, type Route } from "../http/route.ts";
import type { Guardrails } from "./guardrails/guardrails.ts";
import { tryRules } from "./guardrails/try-rules.ts";
import type { AccountSettings } from "./limits/account-settings.ts";
import { GATEWAYS_PATH, requireGateway } from "./settings/gateway-routes.ts";
import type { Gateways } from "./settings/gateways.ts";

export const ACCOUNT_GUARDRAILS = "/accounts/{account_id}/ai-gateway/guardrails";
const GATEWAY = `${GATEWAYS_PATH}/{gateway_id}/guardrails`;

type Rules = readonly GuardrailRule[];

interface GuardrailRoutesParts {
  readonly gateways: Gateways;
  readonly accountGuardrails: AccountSettings<Rules>;
  readonly guardrails: Guardrails;
  /** Texts that take the event loop for long. */
  readonly longBodies: LongWork;
  /** Signs what webhooks of an account get. */
  readonly secretOf: (accountId: string) => string;
}

const rulesBody = z.strictObject({ rules: guardrailRules });
const MAX_TRIED = 256 * 1024;
const trialBody = z.strictObject({
  rules: guardrailRules,
  text: z.string().max(MAX_TRIED),
  on: z.enum(["prompt", "response"]).default("prompt"),
});
const trialResult = z.object({
  action: z.enum(["block", "mask", "flag"]).nullable(),
  /** With masks; null if the text would be blocked. */
  text: z.string().nullable(),
  findings: z.array(z.object({ rule: z.string(), action: z.string(), kind: z.string(), count: z.number() })),
});

export function guardrailRoutes({
  gateways,
  accountGuardrails,
  guardrails,
  longBodies,
  secretOf,
}: GuardrailRoutesParts): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: GATEWAY,
      access: "gateway.read",
      summary: "The guardrails of a gateway.",
      result: rulesBody,
      handler: ({ params }) => tagged(requireGateway(gateways, params).settings.guardrail_rules ?? []),
    }),
    defineRoute({
      method: "PUT",
      path: GATEWAY,
      access: "gateway.edit",
      summary: "Replaces the guardrails of a gateway. `If-Match` takes the `etag` of a read.",
      body: rulesBody,
      maxBodyBytes: 1024 * 1024,
      result: rulesBody,
      handler: async ({ params, body, headers }) => {
        const gateway = await gateways.change(params.account_id, params.gateway_id, (present) => {
          requireMatch(headers, { rules: present.guardrail_rules ?? [] });
          return { guardrail_rules: body.rules.length === 0 ? null : body.rules };
        });
        return tagged(gateway.settings.guardrail_rules ?? []);
      },
    }),
    defineRoute({
      method: "GET",
      path: ACCOUNT_GUARDRAILS,
      access: "gateway.read",
      summary: "The guardrails of the account, which apply to all of its gateways.",
      result: rulesBody,
      handler: ({ params }) => tagged(accountGuardrails.of(params.account_id) ?? []),
    }),
    defineRoute({
      method: "PUT",
      path: ACCOUNT_GUARDRAILS,
      access: "gateway.edit",
      summary: "Replaces the guardrails of the account. `If-Match` takes the `etag` of a read.",
      body: rulesBody,
      maxBodyBytes: 1024 * 1024,
      result: rulesBody,
      handler: async ({ params, body, headers }) => {
        const rules = await accountGuardrails.change(params.account_id, (present) => {
          requireMatch(headers, { rules: present ?? [] });
          return body.rules.length === 0 ? undefined : body.rules;
        });
        for (const gateway of gateways.list(params.account_id)) await guardrails.prepare(gateway);
        return tagged(rules ?? []);
      },
    }),
    defineRoute({
      method: "GET",
      path: `${ACCOUNT_GUARDRAILS}/secret`,
      access: "gateway.edit",
      summary: "The secret with which requests to the webhooks of guardrails are signed.",
      result: z.object({ secret: z.string() }),
      handler: ({ params }) => ({ result: { secret: secretOf(params.account_id) } }),
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${ACCOUNT_GUARDRAILS}/try`,
      access: "gateway.read",
      // It reads no object of the account.
      narrowsToGateway: true,
      summary: "What rules would do with a text. Nothing is stored.",
      body: trialBody,
      maxBodyBytes: 2 * 1024 * 1024,
      result: trialResult,
      handler: async ({ params, body }) => {
        // Rules that nobody has tried may take long.
        const turn = () => new Promise<void>((begin) => longBodies.begin(params.account_id, begin));
        return { result: await tryRules(body.rules, body.text, body.on, turn) };
      },
    }),
  ];
}

function tagged(rules: Rules): Reply {
  const result = { rules };
  return { result, headers: { etag: entityTag(result) } };
}
