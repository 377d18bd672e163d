/**
 * Host names that stand for one gateway (`gateway.hosts`): all paths of such a host are below its gateway, so that neither another gateway nor the dashboard nor
 * the management interface can be reached through it.
 *
 *   https://ai.example.com/openai/chat/completions   →  /v1/{account}/{gateway}/openai/chat/completions
 *   https://ai.example.com/                          →  /v1/{account}/{gateway}, the universal endpoint
 *   https://ai.example.com/v1/messages, /v1beta/…    →  /v1/{account}/{gateway}/compat/v1/messages, for SDKs that add a version to their base address
 */
import type { PlaceAtHost } from "../../http/area.ts";
import { COMPAT } from "../plan/universal-step.ts";

/** By host name: account and gateway, with `/` between them. */
export type GatewayHosts = Readonly<Record<string, string>>;

const VERSIONED = /^\/v1(?:beta)?\//;

/** Null without hosts. */
export function createHostPaths(hosts: GatewayHosts): PlaceAtHost | null {
  const bases = new Map(Object.entries(hosts).map(([host, gateway]) => [host, `/v1/${gateway}`]));
  if (bases.size === 0) return null;
  return (host, path) => {
    const base = bases.get(host) ?? bases.get(plainName(host));
    if (base === undefined) return null;
    if (VERSIONED.test(path)) return `${base}/${COMPAT}${path}`;
    return path === "/" ? base : base + path;
  };
}

/** Without the port and the dot of the root, in lower case. */
function plainName(host: string): string {
  return host.replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase();
}
