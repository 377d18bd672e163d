/** How paths below a provider's segment map to the provider's own paths. Paths come without leading slash and without query. */
import { SignalboxError } from "@signalbox/protocol";
import type { PathRule } from "./provider.ts";

const VERSION = "v1/";
/** One DNS label: what may be put into a host name from a request's path. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** APIs shaped like OpenAI's, below a base that ends in the version: `x` and `v1/x` are the same place. */
export const openAiPath: PathRule = (path) => ({ path: withoutVersion(path) });

/** The path as it is. */
export const samePath: PathRule = (path) => ({ path });

/** The OpenAI-shaped endpoints live below `prefix`; everything else is the provider's native API. */
export function openAiBelow(prefix: string, endpoints: readonly string[] = OPENAI_ENDPOINTS): PathRule {
  const known = new Set(endpoints);
  return (path) => {
    const plain = withoutVersion(path);
    return { path: known.has(plain) ? `${prefix}${plain}` : path };
  };
}

export const OPENAI_ENDPOINTS = ["chat/completions", "completions", "embeddings", "responses", "models"];

/** `{resource}/{deployment}/rest`, or `{resource}/openai/rest` for the resource's version-less API. */
export const azurePath: PathRule = (path) => {
  const [resource = "", deployment = "", ...rest] = path.split("/");
  if (!LABEL.test(resource) || deployment === "" || rest.length === 0) {
    throw misplaced("azure-openai paths are {resource}/{deployment}/…");
  }
  const prefix = deployment === "openai" ? "openai" : `openai/deployments/${deployment}`;
  return { hostPart: resource, path: `${prefix}/${rest.join("/")}` };
};

/** `bedrock-runtime/{region}/rest`; the OpenAI-shaped endpoints are below `openai/v1`. */
export const bedrockPath: PathRule = (path) => {
  const [service = "", region = "", ...rest] = path.split("/");
  if (service !== "bedrock-runtime" || !LABEL.test(region) || rest.length === 0) {
    throw misplaced("aws-bedrock paths are bedrock-runtime/{region}/…");
  }
  return { hostPart: region, path: openAiBelow("openai/v1/")(rest.join("/"), "").path };
};

/** The region stands inside the path: `v1/projects/{project}/locations/{region}/…`. */
export const vertexPath: PathRule = (path) => {
  const region = /^[^/]+\/projects\/[^/]+\/locations\/([^/]+)\//.exec(path)?.[1];
  if (region === undefined || !LABEL.test(region)) {
    throw misplaced("google-vertex-ai paths are v1/projects/{project}/locations/{region}/…");
  }
  return { hostPart: region === "global" ? "" : `${region}-`, path };
};

/** `{model}` runs a model; the OpenAI-shaped endpoints are below `v1`. */
export const workersAiPath: PathRule = (path, accountId) => {
  const account = `accounts/${encodeURIComponent(accountId)}/ai/`;
  const plain = withoutVersion(path);
  if (OPENAI_ENDPOINTS.includes(plain)) return { path: `${account}v1/${plain}` };
  return { path: `${account}run/${path.startsWith("run/") ? path.slice(4) : path}` };
};

/** Chat, embeddings and the like through the router; other paths name a model of the inference API. */
export const huggingfacePath: PathRule = (path) => {
  const plain = withoutVersion(path);
  return { path: OPENAI_ENDPOINTS.includes(plain) ? `v1/${plain}` : `hf-inference/models/${path}` };
};

/** Ollama's own API is below `api/`, the OpenAI-shaped one below `v1/`. */
export const ollamaPath: PathRule = (path) => ({
  path: path.startsWith("api/") ? path : `v1/${withoutVersion(path)}`,
});

function withoutVersion(path: string): string {
  return path.startsWith(VERSION) ? path.slice(VERSION.length) : path;
}

function misplaced(message: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message });
}
