/** Routes of one stored call: its neighbours, the command that repeats it, and a replay against the same or another model. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { isAllowed, type Principal } from "../../accounts/index.ts";
import { readStart } from "../../core/response-start.ts";
import type { OwnServer } from "../../contracts/own-server.ts";
import type { CallLog, CallRow, GatewayRef, StoredBody } from "../../engines/call-log/index.ts";
import { defineRoute, type PathParams, type Route } from "../../http/route.ts";
import { type CallAgain, callWithModel, sameCall, toCurl } from "./call-again.ts";

const ONE = "/accounts/{account_id}/ai-gateway/gateways/{gateway_id}/logs/{id}";
/** The part of the answer that the response contains; the whole is in the row of the new call. */
const SHOWN_BYTES = 256 * 1024;
/** An answer that is longer is broken off. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export interface ReplayRouteParts {
  readonly callLog: Pick<CallLog, "get" | "body" | "neighbours">;
  readonly gatewayExists: (accountId: string, gatewayId: string) => boolean;
  readonly server: OwnServer;
}

const model = z
  .string()
  .max(256)
  .regex(/^[^/\s]+\/\S+$/, "expected provider/model");

export function replayRoutes(parts: ReplayRouteParts): Route[] {
  return [neighboursRoute(parts), curlRoute(parts), replayRoute(parts)];
}

function neighboursRoute(parts: ReplayRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: `${ONE}/neighbours`,
    access: "gateway.read",
    summary: "The ids of the calls of the gateway before and after one; null at the ends.",
    result: z.object({ newer: z.string().nullable(), older: z.string().nullable() }),
    handler: async ({ params }) => {
      const { gateway, row } = await findCall(parts, params);
      return { result: await parts.callLog.neighbours(gateway, row.id) };
    },
  });
}

function curlRoute(parts: ReplayRouteParts): Route {
  return defineRoute({
    method: "GET",
    path: `${ONE}/curl`,
    access: "gateway.read",
    summary: "The call as a curl command. Credentials are variables of the shell.",
    handler: async ({ params, trafficOrigin }) => {
      const { row, request } = await findCall(parts, params);
      return {
        raw: {
          contentType: "text/plain; charset=utf-8",
          body: toCurl(sameCall(row, request), trafficOrigin),
        },
        headers: { "cache-control": "no-store" },
      };
    },
  });
}

function replayRoute(parts: ReplayRouteParts): Route {
  return defineRoute({
    method: "POST",
    effect: "action",
    path: `${ONE}/replay`,
    // The call has a row of its own; its answer does not belong in the audit log.
    changesNothing: true,
    access: "gateway.run",
    summary:
      "Send the request of a stored call again, with `model` (`provider/model`) to another model. It is a call of the caller: with its limits, its cost and its own row.",
    body: z.strictObject({ model: model.optional() }),
    result: z.object({
      status: z.int(),
      success: z.boolean(),
      log_id: z.string().nullable(),
      content_type: z.string(),
      answer: z.string(),
      answer_complete: z.boolean(),
    }),
    handler: async ({ params, body, headers, principal, signal }) => {
      // The answer shows what was asked.
      if (!isAllowed(principal, params.account_id, "gateway.read")) {
        throw new SignalboxError("forbidden", { message: "A replay needs gateway.read, too" });
      }
      const { row, request } = await findCall(parts, params);
      const call =
        body.model === undefined ? sameCall(row, request) : callWithModel(row, request, body.model);
      if (body.model === undefined && (request === null || !request.isComplete)) {
        throw new SignalboxError("conflict", {
          message: "The call cannot be replayed: its request body is not stored",
        });
      }
      const response = await send(parts.server, call, credentialOf(headers.authorization, principal), signal);
      const { bytes, isWhole } = await readStart(response, SHOWN_BYTES, MAX_ANSWER_BYTES);
      return {
        result: {
          status: response.status,
          success: response.ok,
          log_id: response.headers.get("gw-aig-log-id"),
          content_type: response.headers.get("content-type") ?? "",
          answer: bytes.toString("utf8"),
          answer_complete: isWhole,
        },
      };
    },
  });
}

/** Undefined: as root. A session of a token has no token that the gateway could meter. */
function credentialOf(authorization: string | undefined, principal: Principal): string | undefined {
  if (authorization !== undefined) return authorization;
  if (principal.kind === "root") return undefined;
  throw new SignalboxError("forbidden", {
    message: "A replay is a call of a token: send it with the token, e.g. with signalbox logs replay --token",
  });
}

function send(
  server: OwnServer,
  { target, method, contentType, body }: CallAgain,
  authorization: string | undefined,
  signal: AbortSignal,
): Promise<Response> {
  return server.call({
    method,
    target,
    headers: {
      "content-type": contentType,
      "content-length": String(body?.length ?? 0),
      "user-agent": "signalbox-replay",
    },
    body,
    signal,
    ...(authorization === undefined ? {} : { authorization }),
  });
}

async function findCall(
  { callLog, gatewayExists }: ReplayRouteParts,
  { account_id: accountId, gateway_id: gatewayId, id }: PathParams<typeof ONE>,
): Promise<{ gateway: GatewayRef; row: CallRow; request: StoredBody | null }> {
  const gateway = { accountId, gatewayId };
  if (!gatewayExists(accountId, gatewayId)) {
    throw new SignalboxError("not_found", { message: "Gateway not found" });
  }
  const row = await callLog.get(gateway, id);
  if (row === null) throw new SignalboxError("not_found", { message: "Log not found" });
  return { gateway, row, request: await callLog.body(gateway, id, "request") };
}
