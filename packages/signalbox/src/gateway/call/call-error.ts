/** Sends an error of the gateway as the response of a call. */
import type { SignalboxError } from "@signalbox/protocol";
import { renderError, sendError } from "../../http/render-error.ts";
import type { CallStart } from "./call-start.ts";

export function sendCallError(start: CallStart, place: number, error: SignalboxError): void {
  const { id, logDetail, response, context, showsStep, guard } = start;
  const further = [...(start.routeHeaders ?? []), ...(guard?.headers ?? [])];
  if (response.destroyed) return;
  const rendered = renderError(error, context.errorDialect ?? "gateway", context.id);
  const headers: Record<string, string> = { ...rendered.headers };
  headers["gw-aig-request-id"] = id;
  if (logDetail !== "none") headers["gw-aig-log-id"] = id;
  if (showsStep) headers["gw-aig-step"] = headers["cf-aig-step"] = String(place);
  for (let i = 0; i + 1 < further.length; i += 2) headers[further[i] ?? ""] = further[i + 1] ?? "";
  sendError(response, { ...rendered, headers });
}
