/** Path rules of providers whose paths name more than an endpoint: a resource, a region, an account or a model. */
import { SignalboxError } from "@signalbox/protocol";
import { OPENAI_ENDPOINTS, openAiBelow, type PathRule, withoutVersion } from "./provider.ts";

/** One DNS label; nothing else of a request's path may become part of a host name. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** `{resource}/{deployment}/…`, or `{resource}/openai/…` for the API of the resource without a deployment. */
export const azurePath: PathRule = (path) => {
  const [resource = "", deployment = "", ...rest] = path.split("/");
  if (!LABEL.test(resource) || deployment === "" || rest.length === 0) {
    throw invalidPath("azure-openai paths are {resource}/{deployment}/…");
  }
  const prefix = deployment === "openai" ? "openai" : `openai/deployments/${deployment}`;
  return { hostPart: resource, path: `${prefix}/${rest.join("/")}` };
};

/** `bedrock-runtime/{region}/…`; the OpenAI-compatible endpoints are below `openai/v1`. */
export const bedrockPath: PathRule = (path) => {
  const [service = "", region = "", ...rest] = path.split("/");
  if (service !== "bedrock-runtime" || !LABEL.test(region) || rest.length === 0) {
    throw invalidPath("aws-bedrock paths are bedrock-runtime/{region}/…");
  }
  return { hostPart: region, path: openAiBelow("openai/v1/")(rest.join("/"), "").path };
};

/** The path contains the region: `v1/projects/{project}/locations/{region}/…`. */
export const vertexPath: PathRule = (path) => {
  const region = /^[^/]+\/projects\/[^/]+\/locations\/([^/]+)\//.exec(path)?.[1];
  if (region === undefined || !LABEL.test(region)) {
    throw invalidPath("google-vertex-ai paths are v1/projects/{project}/locations/{region}/…");
  }
  return { hostPart: region === "global" ? "" : `${region}-`, path };
};

/** `{model}` runs a model; the OpenAI-compatible endpoints are below `v1`. */
export const workersAiPath: PathRule = (path, accountId) => {
  const account = `accounts/${encodeURIComponent(accountId)}/ai/`;
  const plain = withoutVersion(path);
  if (OPENAI_ENDPOINTS.includes(plain)) return { path: `${account}v1/${plain}` };
  return { path: `${account}run/${path.startsWith("run/") ? path.slice(4) : path}` };
};

/** OpenAI-compatible endpoints go to the router; other paths name a model of the inference API. */
export const huggingfacePath: PathRule = (path) => {
  const plain = withoutVersion(path);
  return { path: OPENAI_ENDPOINTS.includes(plain) ? `v1/${plain}` : `hf-inference/models/${path}` };
};

/** Ollama's native API is below `api/`, the OpenAI-compatible one below `v1/`. */
export const ollamaPath: PathRule = (path) => ({
  path: path.startsWith("api/") ? path : `v1/${withoutVersion(path)}`,
});

function invalidPath(message: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message });
}
