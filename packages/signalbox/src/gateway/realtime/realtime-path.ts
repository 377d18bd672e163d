/**
 * The paths of realtime sessions:
 *
 *   /v1/{account}/{gateway}/{provider}/{path}       the provider's own path, for example `openai/realtime`
 *   /v1/{account}/{gateway}/openai?model=           the hosted original's short form of `openai/realtime`
 *   /v1/{account}/{gateway}/compat/{path}           the provider by the name of the model
 *   /v1/{path}                                      the account `default`; the gateway by header
 */
import { DOOR_WORDS, SignalboxError } from "@signalbox/protocol";
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import { checkProviderPath, decodePath } from "../plan/forwarded-request.ts";
import { COMPAT } from "../plan/universal-step.ts";

export interface RealtimePath {
  readonly accountId: string;
  /** Null when a header names the gateway. */
  readonly gatewayId: string | null;
  /** Null when the name of the model decides. */
  readonly provider: string | null;
  /** After the provider segment, as sent. */
  readonly path: string;
}

const VERSION = /^v1\//;
const OPENAI = "openai";
const REALTIME = "realtime";

/** Other names of providers, as the hosted original knows them. */
export const PROVIDER_ALIASES: ReadonlyMap<string, string> = new Map([["google", "google-ai-studio"]]);

export function parseRealtimePath(path: string): RealtimePath {
  const [, version = "", first = "", ...rest] = path.split("/");
  if (decodePath(version) !== "v1") throw new SignalboxError("not_found");
  const accountId = decodePath(first);
  if (DOOR_WORDS.has(accountId)) {
    const own = [first, ...rest].join("/");
    return { accountId: DEFAULT_ACCOUNT, gatewayId: null, provider: null, path: own };
  }
  const [gateway = "", provider = "", ...below] = rest;
  const gatewayId = decodePath(gateway);
  if (accountId === "" || gatewayId === "") throw new SignalboxError("gateway_not_found");
  if (provider === "") throw new SignalboxError("not_found");
  const own = below.join("/");
  checkProviderPath(own);
  const slug = decodePath(provider);
  if (slug === COMPAT) return { accountId, gatewayId, provider: null, path: own.replace(VERSION, "") };
  return { accountId, gatewayId, provider: slug, path: own === "" && slug === OPENAI ? REALTIME : own };
}
