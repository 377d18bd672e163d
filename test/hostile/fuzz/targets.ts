import { agentRpcTarget } from "./agent-rpc.ts";
import { agentSqlTarget } from "./agent-sql.ts";
import { gatewayRequestsTarget } from "./gateway-requests.ts";
import { httpTarget } from "./http.ts";
import { nodeLinksTarget } from "./node-links.ts";
import { plainRequestsTarget } from "./plain-requests.ts";
import { tagFiltersTarget } from "./tag-filters.ts";
import { upstreamTarget } from "./upstream.ts";
import { webhookSignaturesTarget } from "./webhook-signatures.ts";
import { websocketFramesTarget } from "./websocket-frames.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  httpTarget,
  plainRequestsTarget,
  websocketFramesTarget,
  upstreamTarget,
  webhookSignaturesTarget,
  tagFiltersTarget,
  agentRpcTarget,
  agentSqlTarget,
  gatewayRequestsTarget,
  nodeLinksTarget,
];
