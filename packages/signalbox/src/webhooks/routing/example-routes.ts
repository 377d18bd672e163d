/** Management routes of examples: deliveries with names that can be sent again. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { renderError, toSignalboxError } from "../../http/render-error.ts";
import { defineRoute, type Route as ManagementRoute } from "../../http/route.ts";
import type { Answer, DeliveryRecord } from "../delivery-record.ts";
import type { Source } from "../source.ts";
import type { Example } from "./examples.ts";
import type { Routing } from "./routing.ts";

const EXAMPLES = "/accounts/{account_id}/webhooks/examples";
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;

const exampleResult = z.object({
  name: z.string(),
  source: z.string(),
  type: z.string(),
  entity: z.string().nullable(),
  body_bytes: z.int(),
  created_at: z.iso.datetime(),
});

const firedResult = z.object({
  /** What a sender would have received. */
  status: z.int(),
  body: z.string(),
  /** Id of the new delivery. */
  delivery: z.string().nullable(),
});

export interface ExampleRouteParts {
  readonly routing: Routing;
  readonly sources: ReadonlyMap<string, Source>;
  readonly intake: {
    fire(source: Source, example: Example, onRecord: (record: DeliveryRecord) => void): Promise<Answer>;
  };
}

export function exampleRoutes(parts: ExampleRouteParts): ManagementRoute[] {
  const { examples } = parts.routing;
  return [
    defineRoute({
      method: "GET",
      path: EXAMPLES,
      access: "webhooks.read",
      summary: "List deliveries that have a name.",
      result: z.array(exampleResult),
      handler: async ({ params }) => {
        const found = await examples.list(params.account_id);
        return { result: found.map(show), resultInfo: { count: found.length } };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${EXAMPLES}/{example_name}`,
      access: "webhooks.read",
      summary: "Read one delivery that has a name.",
      result: exampleResult,
      handler: async ({ params }) => ({
        result: show(await examples.find(params.account_id, params.example_name)),
      }),
    }),
    defineRoute({
      method: "PUT",
      path: `${EXAMPLES}/{example_name}`,
      access: "webhooks.edit",
      summary: "Give a stored delivery a name.",
      body: z.strictObject({ delivery: z.string().max(64) }),
      result: exampleResult,
      handler: async ({ params, body }) => {
        const { account_id: accountId, example_name: name } = params;
        if (!NAME.test(name))
          throw new SignalboxError("invalid_request", {
            message: "The name of an example has lower-case letters, digits, ., _ and -",
          });
        return {
          result: show(await examples.put({ ...(await copyOf(parts, accountId, body.delivery)), name })),
        };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: `${EXAMPLES}/{example_name}`,
      access: "webhooks.edit",
      summary: "Delete the copy of a delivery that has a name.",
      result: exampleResult,
      handler: async ({ params }) => ({
        result: show(await examples.delete(params.account_id, params.example_name)),
      }),
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${EXAMPLES}/{example_name}/fire`,
      access: "webhooks.edit",
      summary: "Process a copy of a delivery that has a name as if it had just arrived, with a new id.",
      result: firedResult,
      handler: async ({ params }) => {
        const example = await examples.find(params.account_id, params.example_name);
        const source = parts.sources.get(example.source);
        if (source?.accountId !== params.account_id)
          throw new SignalboxError("conflict", {
            message: `The source ${example.source} does not exist any more`,
          });
        let record: DeliveryRecord | null = null;
        const answer = await parts.intake
          .fire(source, example, (made) => (record = made))
          .catch((error: unknown) => {
            const known = toSignalboxError(error);
            return { status: known.status, body: renderError(known, "envelope", "").body };
          });
        const { id = null } = (record as DeliveryRecord | null) ?? {};
        return { result: { status: answer.status, body: answer.body, delivery: id } };
      },
    }),
  ];
}

async function copyOf(
  { routing }: ExampleRouteParts,
  accountId: string,
  id: string,
): Promise<Omit<Example, "name" | "createdAt">> {
  const found = await routing.findDelivery(accountId, id);
  if (found === undefined)
    throw new SignalboxError("not_found", { message: "Delivery not found, or its body was not kept" });
  const { source, type, entity, target, contentType, headers, body } = found;
  return { accountId, source, type, entity, target, contentType, headers, body };
}

function show(example: Example): z.input<typeof exampleResult> {
  return {
    name: example.name,
    source: example.source,
    type: example.type,
    entity: example.entity,
    body_bytes: example.body.length,
    created_at: new Date(example.createdAt).toISOString(),
  };
}
