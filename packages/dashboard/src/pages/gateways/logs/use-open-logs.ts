import { CUSTOM } from "../../../components/time-range/time-range.ts";
import { withQuery } from "../../../http/api.ts";
import { navigate } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { OTHER } from "../../../components/chart/series-color.ts";

/** Calls to list: those of a part of a chart, or of a row of a table. Absent members filter nothing. */
export interface LogQuery {
  readonly from?: number;
  readonly to?: number;
  readonly provider?: string;
  readonly model?: string;
  readonly outcome?: "success" | "error";
  /** A key and a value of the metadata, e.g. `user=ada`. */
  readonly metadata?: string;
}

/** The address of the logs of one gateway, or of all gateways if `gatewayId` is null, with filters; see `use-log-filters.ts`. */
export function useLogsAddress(gatewayId: string | null): (query: LogQuery) => string {
  const { page } = useAccountPaths();
  const path = gatewayId === null ? page("logs") : page("gateways", gatewayId);
  return ({ from, to, provider, model, outcome, metadata }) =>
    withQuery(path, {
      ...(from === undefined || to === undefined
        ? {}
        : { range: CUSTOM, from: new Date(from).toISOString(), to: new Date(to).toISOString() }),
      provider: nameOf(provider),
      model: nameOf(model),
      outcome: outcome ?? "",
      metadata: metadata ?? "",
    });
}

/** Goes to these logs. */
export function useOpenLogs(gatewayId: string | null): (query: LogQuery) => void {
  const address = useLogsAddress(gatewayId);
  return (query) => navigate(address(query));
}

/** The groups of the rest and of calls without a name cannot be filtered by. */
function nameOf(name: string | undefined): string {
  return name === undefined || name === OTHER || name === "unknown" ? "" : name;
}
