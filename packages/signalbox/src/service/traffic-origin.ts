/** The address of the traffic (scheme, host and port), for the terminal and the dashboard. */
import { ownOrigin } from "../accounts/index.ts";
import type { Config } from "../config/index.ts";
import type { HttpRequest } from "../engines/http-server/index.ts";
import type { Front } from "../http/index.ts";

/** Returns the configured address, otherwise the address of the listener. */
export function trafficOrigin({ url }: Front, config: Config): string {
  return publicUrlOf(config) ?? url;
}

/** Returns the configured address, otherwise the address that the client used, if traffic and management share it and it is one of this server. */
export function trafficOriginFor(request: HttpRequest, front: Front | undefined, config: Config): string {
  const { url = "", adminUrl = "" } = front ?? {};
  const used = url === adminUrl ? ownOrigin(request, config.file.dashboard.allowedHosts) : null;
  return publicUrlOf(config) ?? used ?? url;
}

function publicUrlOf(config: Config): string | undefined {
  return config.file.listener.publicUrl?.replace(/\/+$/, "");
}
