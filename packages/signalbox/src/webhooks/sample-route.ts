/** The route that shows the sample of a source, without a signature: what a test event sends unless the caller changes it. */
import { z } from "zod";
import type { Clock } from "../core/clock.ts";
import { ulid } from "../core/ulid.ts";
import { defineRoute, type PathParams, type Route } from "../http/route.ts";
import { adaptSample } from "./adapt-sample.ts";
import { parsePayload } from "./read-event.ts";
import type { Source } from "./source.ts";
import { findFirst, type Sample } from "./sources/index.ts";

/** Entities as the providers name them; of other sources, a device. */
const ENTITIES: Readonly<Record<string, string>> = {
  github: "acme/widgets",
  gitlab: "acme/widgets",
  stripe: "cus_sample",
  slack: "T0SAMPLE",
  discord: "100000000000000000",
  twilio: "AC00000000000000000000000000000000",
  shopify: "sample.myshopify.com",
  linear: "sample-organization",
  pagerduty: "PSAMPLE",
};
const DEFAULT_ENTITY = "my-device";

const SAMPLE = "/accounts/{account_id}/webhooks/sources/{source_name}/sample";

interface SampleRouteParts {
  readonly clock: Clock;
  readonly findOwn: (params: PathParams<typeof SAMPLE>) => Source;
}

export function sampleRoute({ clock, findOwn }: SampleRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: SAMPLE,
    access: "webhooks.read",
    summary: "Read the sample that a test event of the source sends, without a signature.",
    query: z.strictObject({
      entity: z.string().min(1).max(512).optional(),
      type: z.string().min(1).max(256).optional(),
    }),
    result: z.object({
      entity: z.string(),
      type: z.string().nullable(),
      content_type: z.string(),
      headers: z.record(z.string(), z.string()),
      body: z.string(),
    }),
    handler: ({ params, query }) => {
      const source = findOwn(params);
      const now = clock.now();
      const entity = query.entity ?? ENTITIES[source.kind.name] ?? DEFAULT_ENTITY;
      const wishes = { entity, type: query.type, deliveryId: `sample-${ulid(now)}` };
      const sample = adaptSample(source, source.kind.sample({ ...wishes, now }), wishes);
      return {
        result: {
          entity,
          type: typeOf(source, sample),
          content_type: sample.contentType,
          headers: { ...sample.headers },
          body: sample.body,
        },
      };
    },
  });
}

function typeOf(source: Source, { headers, contentType, body }: Sample): string | null {
  const parsed = parsePayload(source.kind, contentType, Buffer.from(body));
  return findFirst(source.eventType, { headers: { ...headers }, ...parsed });
}
