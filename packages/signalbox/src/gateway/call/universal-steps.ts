/**
 * The universal endpoint's body: an array of steps (or one), each a provider, an endpoint of it, headers and the JSON to send.
 * A step's own headers win over its `config`, which wins over the request's headers, which win over the gateway's settings.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Gateway } from "../settings/gateway.ts";
import { type CallOptions, CallOptionsReader, stepConfigOptions } from "./call-options.ts";
import { headerRule } from "./forwarded-headers.ts";
import { checkProviderPath } from "./gateway-path.ts";
import { malformed } from "./inspect-body.ts";
import { refuseOwnToken, refuseOwnTokenInTarget, type RootTokenCheck } from "./own-token.ts";
import { planStep, type StepParts } from "./plan-step.ts";
import type { Step } from "./step.ts";

const MAX_STEPS = 20;
/** RFC 9110, section 5: a token, and visible characters without line breaks. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
export interface UniversalParts extends StepParts {
  readonly authenticator: RootTokenCheck;
}

export function parseUniversalSteps(
  bytes: Buffer,
  gateway: Gateway,
  parts: UniversalParts,
  callOptions: CallOptions,
  traceLine: string,
): Step[] {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw malformed("The body is not valid JSON");
  }
  const items: unknown[] = Array.isArray(value) ? value : [value];
  if (items.length === 0 || items.length > MAX_STEPS) {
    throw malformed(`The body must be an array of 1 to ${MAX_STEPS} steps`);
  }
  return items.map((item, i) => {
    try {
      return toStep(item, gateway, parts, callOptions, traceLine);
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      throw new SignalboxError(error.id, { message: `step ${i}: ${error.message}` });
    }
  });
}

function toStep(
  item: unknown,
  gateway: Gateway,
  parts: UniversalParts,
  callOptions: CallOptions,
  traceLine: string,
): Step {
  if (typeof item !== "object" || item === null) throw malformed("must be an object");
  const given = item as Record<string, unknown>;
  const { provider: slug, endpoint, query } = given;
  if (typeof slug !== "string") throw malformed("provider must be a string");
  const provider = parts.providers.find(gateway.accountId, slug);
  if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
  if (typeof endpoint !== "string") throw malformed("endpoint must be a string");
  const [path, search] = splitEndpoint(endpoint);
  checkProviderPath(path);
  refuseOwnTokenInTarget(parts.authenticator, path, search);
  const headers = readHeaders(given["headers"], provider.credentialHeaders, parts.authenticator);
  const body = toJson(query ?? {});
  return planStep(parts, {
    gateway,
    provider,
    method: "POST",
    path,
    query: search,
    headerLines: headers.lines + traceLine,
    credentialLines: headers.credentialLines,
    contentType: headers.contentType,
    isEncoded: false,
    body: { kind: "whole", bytes: body },
    options: { ...callOptions, ...stepConfigOptions(given["config"]), ...headers.options },
  });
}

/** What was parsed can be written again, unless it is nested deeper than V8's stack: it reads JSON in a loop but writes it recursively. */
function toJson(value: unknown): Buffer {
  try {
    return Buffer.from(JSON.stringify(value));
  } catch (error) {
    if (error instanceof RangeError) throw malformed("query is nested too deeply");
    throw error;
  }
}

function splitEndpoint(endpoint: string): [string, string] {
  const trimmed = endpoint.replace(/^\/+/, "");
  if (!/^[\x21-\x7e]*$/.test(trimmed) || trimmed.includes("#")) {
    throw malformed("endpoint must be a path in printable ASCII");
  }
  const question = trimmed.indexOf("?");
  return question === -1 ? [trimmed, ""] : [trimmed.slice(0, question), trimmed.slice(question + 1)];
}

interface StepHeaders {
  readonly lines: string;
  readonly credentialLines: string;
  readonly contentType: string;
  readonly options: CallOptions;
}

function readHeaders(
  given: unknown,
  credentialHeaders: readonly string[],
  root: RootTokenCheck,
): StepHeaders {
  if (given !== undefined && given !== null && (typeof given !== "object" || Array.isArray(given))) {
    throw malformed("headers must be an object");
  }
  const reader = new CallOptionsReader();
  let lines = "";
  let credentialLines = "";
  let contentType = "application/json";
  for (const [raw, value] of Object.entries(given ?? {})) {
    const { name, fate } = headerRule(raw);
    const text = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
    if (!HEADER_NAME.test(name) || typeof text !== "string" || !HEADER_VALUE.test(text)) {
      throw malformed(`headers.${raw.slice(0, 64)} is not a valid header`);
    }
    if (fate === "drop") continue;
    if (fate === "option") {
      reader.add(name, text);
      continue;
    }
    refuseOwnToken(root, text);
    if (name === "content-type") {
      contentType = text;
    } else {
      const line = `${name}: ${text}\r\n`;
      if (credentialHeaders.includes(name)) credentialLines += line;
      else lines += line;
    }
  }
  return {
    lines: `content-type: ${contentType}\r\n${lines}accept-encoding: identity\r\n`,
    credentialLines,
    contentType,
    options: reader.options,
  };
}
