/**
 * The resource types that can be tagged: Signalbox's resources, and the types of the public resource tagging interface, for its clients.
 * The configuration can add more.
 */
export interface TagResourceType {
  readonly name: string;
  /** `zone`: also available below `/zones/{zone_id}`, as a resource of that zone. */
  readonly scope: "account" | "zone";
  /** Field with the id of the parent, which is part of the resource's identity, e.g. the worker of a worker version. */
  readonly parent?: "worker_id" | "access_application_id";
}

const account = (name: string): TagResourceType => ({ name, scope: "account" });
const zone = (name: string): TagResourceType => ({ name, scope: "zone" });

/** Resources of Signalbox. Their tags are deleted with the resource. An `agent` is one instance with the id `{agent}/{instance}`. */
const OWN = ["account", "ai_gateway", "agent", "webhook_source", "api_token"].map(account);

const OF_ACCOUNTS = [
  "access_application",
  "access_group",
  "account_ruleset",
  "alerting_policy",
  "alerting_webhook",
  "cloudflared_tunnel",
  "cws_deployment",
  "cws_policy",
  "cws_policy_set",
  "cws_workload",
  "d1_database",
  "durable_object_namespace",
  "gateway_list",
  "gateway_rule",
  "image",
  "infrastructure_target",
  "kv_namespace",
  "load_balancer_monitor",
  "load_balancer_pool",
  "pages_project",
  "queue",
  "r2_bucket",
  "resource_share",
  "stream_live_input",
  "stream_video",
  "vectorize_index",
  "worker",
].map(account);

const OF_ZONES = [
  "api_gateway_operation",
  "custom_certificate",
  "custom_hostname",
  "dns_record",
  "healthcheck",
  "load_balancer",
  "managed_client_certificate",
  "worker_route",
  "zone",
  "zone_ruleset",
].map(zone);

export const TAG_RESOURCE_TYPES: readonly TagResourceType[] = [
  ...OWN,
  ...OF_ACCOUNTS,
  ...OF_ZONES,
  { name: "worker_version", scope: "account", parent: "worker_id" },
  { name: "access_application_policy", scope: "zone", parent: "access_application_id" },
];
