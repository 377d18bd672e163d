/** The addresses of the service, for the terminal and the dashboard, and the first commands that contain them. */
import { ownOrigin } from "../accounts/index.ts";
import type { AreaModule, FirstCommand, OverviewCard } from "../area-module.ts";
import type { Config } from "../config/index.ts";
import type { HttpRequest } from "../engines/http-server/index.ts";
import type { Front } from "../http/index.ts";

/** Scheme, host and port. */
export interface Origins {
  readonly traffic: string;
  readonly administration: string;
}

/** Returns the configured address, otherwise the addresses of the listeners. */
export function ownOrigins({ url, adminUrl }: Front, config: Config): Origins {
  const publicUrl = publicUrlOf(config);
  return {
    traffic: publicUrl ?? url,
    administration: url === adminUrl ? (publicUrl ?? adminUrl) : adminUrl,
  };
}

/** Returns the configured address, otherwise the address that the client used, if it is one of this server. */
export function originsFor(request: HttpRequest, front: Front | undefined, config: Config): Origins {
  const { url = "", adminUrl = "" } = front ?? {};
  const publicUrl = publicUrlOf(config);
  const administration = ownOrigin(request, config.file.dashboard.allowedHosts) ?? adminUrl;
  if (url !== adminUrl) return { traffic: publicUrl ?? url, administration };
  return { traffic: publicUrl ?? administration, administration: publicUrl ?? administration };
}

function publicUrlOf(config: Config): string | undefined {
  return config.file.listener.publicUrl?.replace(/\/+$/, "");
}

/** The order in which the commands work: an event must be sent before an agent can list it. */
const ORDER: readonly OverviewCard[] = ["gateway", "webhooks", "agents", "tags"];

/** Returns commands that can be pasted into a shell, in the order in which to run them. `tokenExpression` is a shell expression, so that the token is not printed. */
export function firstCommandsOf(
  areas: readonly AreaModule[],
  { traffic, administration }: Origins,
  tokenExpression: string,
): (FirstCommand & { readonly card: OverviewCard })[] {
  // An area without its own paths is used through the management interface.
  return areas
    .flatMap(({ card = "agents", mounts, firstCommands }) =>
      (firstCommands?.(mounts.length > 0 ? traffic : administration, tokenExpression) ?? []).map(
        (command) => ({ card, ...command }),
      ),
    )
    .toSorted((a, b) => ORDER.indexOf(a.card) - ORDER.indexOf(b.card));
}
