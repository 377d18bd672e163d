/** Sends an error of the gateway as the response of a call. */
import type { SignalboxError } from "@signalbox/protocol";
import { renderError, sendError } from "../../http/render-error.ts";
import type { CallStart } from "./call-start.ts";

export function sendCallError(start: CallStart, stepIndex: number, error: SignalboxError): void {
  const { id, logDetail, response, requestId, showsStep, errorDialect, routeHeaders = [] } = start;
  if (response.destroyed) return;
  const rendered = renderError(error, errorDialect, requestId);
  const headers: Record<string, string> = { ...rendered.headers };
  if (logDetail !== "none") headers["gw-aig-log-id"] = id;
  if (showsStep) headers["gw-aig-step"] = headers["cf-aig-step"] = String(stepIndex);
  for (let i = 0; i + 1 < routeHeaders.length; i += 2)
    headers[routeHeaders[i] ?? ""] = routeHeaders[i + 1] ?? "";
  sendError(response, { ...rendered, headers });
}
