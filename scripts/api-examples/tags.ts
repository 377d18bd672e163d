/** Tags. */
import { refused, step } from "./step.ts";

export const TAGS = [
  step(({ account }) =>
    account.tags.set({
      resource_type: "ai_gateway",
      resource_id: "shop",
      tags: { env: "prod", team: "search" },
    }),
  ),
  step(({ account }) => account.tags.get({ resource_type: "ai_gateway", resource_id: "shop" })),
  step(({ account }) =>
    account.tags.patch({
      resource_type: "ai_gateway",
      resource_id: "shop",
      tags: { owner: "ada", team: null },
    }),
  ),
  step(({ account }) =>
    account.tags.bulk([
      { resource_type: "worker", resource_id: "checkout", tags: { env: "prod" } },
      { resource_type: "worker", resource_id: "search", operation: "patch", tags: { env: "dev" } },
    ]),
  ),
  step(({ account }) => account.tags.resources({ tag: ["env=prod", "!deprecated"] }).all()),
  step(({ account }) => account.tags.keys({ prefix: "e" }).all()),
  step(({ account }) => account.tags.values("env").all()),
  refused(400, "the key is missing: this is the operation for a path that ends too early", ({ client }) =>
    client.request("GET", "/accounts/default/tags/values"),
  ),
  step(({ client }) =>
    client.request("GET", "/accounts/default/tags/summary", { query: { tag: ["env=prod"] } }),
  ),
  step(
    ({ account }) =>
      account.tags.createJob({ operation: "patch", tag: ["env=dev"], tags: { env: "development" } }),
    ({ id }: { id: string }) => ({ jobId: id }),
  ),
  step(({ account }) => account.tags.jobs().all()),
  step(({ account, jobId }) => account.tags.job(jobId)),
  step(({ account, jobId }) => account.tags.jobFailures(jobId).all()),
  step(({ account, jobId }) => account.tags.cancelJob(jobId)),
  step(({ account }) => account.tags.history({ resource_type: "ai_gateway", resource_id: "shop" }).all()),
  step(({ client }) => client.request("GET", "/accounts/default/tags/changes", { query: { limit: 100 } })),
  step(({ account }) => account.tags.delete({ resource_type: "worker", resource_id: "search" })),
  step(({ client }) =>
    client.request("PUT", "/zones/7c3d9f/tags", {
      query: { account_id: "default" },
      body: { resource_type: "zone", resource_id: "7c3d9f", tags: { env: "prod" } },
    }),
  ),
  step(({ client }) =>
    client.request("GET", "/zones/7c3d9f/tags", {
      query: { account_id: "default", resource_type: "zone", resource_id: "7c3d9f" },
    }),
  ),
  step(({ client }) =>
    client.request("PATCH", "/zones/7c3d9f/tags", {
      query: { account_id: "default" },
      body: { resource_type: "zone", resource_id: "7c3d9f", tags: { team: "web" } },
    }),
  ),
  step(({ client }) =>
    client.request("GET", "/zones/7c3d9f/tags/history", {
      query: { account_id: "default", resource_type: "zone", resource_id: "7c3d9f" },
    }),
  ),
  step(({ client }) =>
    client.request("DELETE", "/zones/7c3d9f/tags", {
      query: { account_id: "default" },
      body: { resource_type: "zone", resource_id: "7c3d9f" },
    }),
  ),
];
