import { describe, expect, it } from "vitest";
import { UsageError } from "./command.ts";
import { planLiteLlmImport } from "./litellm-config.ts";
import { parseGraph } from "../gateway/routes/route-graph.ts";

const CONFIG = `
model_list:
  - model_name: smart
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, rpm: 60, weight: 3 }
  - model_name: smart
    litellm_params: { model: anthropic/claude-opus-4-5, api_key: sk-ant-in-the-file, timeout: 30, max_retries: 9 }
  - model_name: cheap
    litellm_params: { model: gemini/gemini-2.5-flash, api_key: os.environ/GEMINI_API_KEY }
    model_info: { input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }
  - model_name: "claude-*"
    litellm_params: { model: "anthropic/*" }
  - model_name: local
    litellm_params: { model: openai/llama, api_base: "http://gpu-1.lan:8000/v1", temperature: 0.2 }
  - model_name: strange
    litellm_params: { model: martian/gpt }
router_settings:
  model_group_alias: { default: smart, missing: nothing }
  routing_strategy: least-busy
  num_retries: 2
litellm_settings:
  fallbacks: [{ smart: [cheap, nowhere] }]
  max_budget: 100
  budget_duration: 30d
  cache: true
  cache_params: { type: redis, ttl: 60 }
  success_callback: [langfuse]
general_settings:
  master_key: sk-1234
  database_url: postgres://x
`;

describe("an import of LiteLLM's configuration", () => {
  const plan = planLiteLlmImport(CONFIG);

  it("turns one deployment into a name, and several or fallbacks into a route that is valid", () => {
    expect(plan.configuration).toEqual({
      gateway: {
        models: {
          smart: "dynamic/smart",
          cheap: "google-ai-studio/gemini-2.5-flash",
          "claude-*": "anthropic/*",
          local: "gpu-1-lan/llama",
          default: "dynamic/smart",
        },
      },
      providers: { "gpu-1-lan": { baseUrl: "http://gpu-1.lan:8000/v1" } },
    });
    expect(plan.routes.map(({ name }) => name)).toEqual(["smart"]);
    const [route] = plan.routes;
    const graph = parseGraph([...(route?.elements ?? [])], () => true);
    expect(graph.elements.get("share")).toMatchObject({ shares: [{ upTo: 75 }, { upTo: 100 }] });
    expect(graph.elements.get("m1-1")).toMatchObject({ model: "gpt-4o", fallback: "m1-2", timeoutMs: null });
    expect(graph.elements.get("m2-1")).toMatchObject({ timeoutMs: 30_000, retries: 4, fallback: "m2-2" });
    expect(graph.elements.get("m2-3")).toMatchObject({ model: "gemini-2.5-flash", fallback: null });
  });

  it("takes over keys by the names of variables, prices, budgets and settings", () => {
    expect(plan.keys).toEqual([
      { provider_slug: "openai", secret_id: "env:OPENAI_API_KEY", rate_limit: 60, rate_limit_period: 60 },
      { provider_slug: "anthropic", secret: "sk-ant-in-the-file" },
      { provider_slug: "google-ai-studio", secret_id: "env:GOOGLE_AI_STUDIO_API_KEY" },
    ]);
    expect(plan.prices).toEqual({ "google-ai-studio": { "gemini-2.5-flash": { in: 1, out: 2 } } });
    expect(plan.limits).toMatchObject([{ id: "litellm-budget", limit: 100, window: 2_592_000 }]);
    expect(plan.gateway).toEqual({ retry_max_attempts: 3, cache_ttl: 60 });
  });

  it("names everything that it does not take over, and no secret", () => {
    const text = plan.notes.join("\n");
    for (const part of [
      /GOOGLE_AI_STUDIO_API_KEY .*GEMINI_API_KEY/,
      /local .*temperature/,
      /strange .*not known/,
      /fallback nowhere/,
      /missing/,
      /least-busy/,
      /success_callback/,
      /database_url/,
      /master_key/,
    ]) {
      expect(text).toMatch(part);
    }
    expect(text).not.toMatch(/sk-1234|sk-ant|postgres/);
  });

  it("keeps two keys of one provider apart, and names what a route has no room for", () => {
    const models = ["KEY_A", "OPENAI_API_KEY", "KEY_B", "KEY_A", ...Array.from({ length: 8 }, () => "KEY_A")];
    const list = models.map(
      (name, i) =>
        `  - { model_name: many, litellm_params: { model: openai/m${i}, api_key: os.environ/${name} } }\n`,
    );
    const { keys, notes, routes } = planLiteLlmImport(`model_list:\n${list.join("")}`);
    expect(keys.map(({ secret_id: id }) => id)).toEqual([
      "env:OPENAI_API_KEY_2",
      "env:OPENAI_API_KEY",
      "env:OPENAI_API_KEY_3",
    ]);
    expect(notes).toContainEqual(expect.stringMatching(/set the variable OPENAI_API_KEY_3 .* of KEY_B$/));
    expect(notes).toContainEqual(
      "many: a route has at most 10 deployments and 15 attempts; left out: 2 deployments",
    );
    expect(() => parseGraph([...(routes[0]?.elements ?? [])], () => true)).not.toThrow();
  });

  it("has budgets of providers, in every form of a period", () => {
    const windowOf = (duration: string) =>
      planLiteLlmImport(
        `router_settings: { provider_budget_config: { openai: { budget_limit: 5, time_period: ${duration} } } }`,
      ).limits[0]?.window;
    expect(["60s", "5m", "24h", "7d", "1mo"].map(windowOf)).toEqual([60, 300, 86_400, 604_800, "month"]);
    expect(["", "0d", "3mo", "9999d", "1y"].map(windowOf)).toEqual([
      null,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it.each(["", "- a", "a: [", "model_list: 5", "a: 1\na: 2", `a: &a [1]\nb: [${"*a,".repeat(500)}]`])(
    "refuses %j",
    (text) => {
      expect(() => planLiteLlmImport(text)).toThrow(UsageError);
    },
  );

  it("notes entries without a name or model instead of failing", () => {
    const { notes, configuration } = planLiteLlmImport("model_list: [5, {model_name: x}, null]");
    expect([notes.length, configuration.gateway.models]).toEqual([3, {}]);
  });
});

describe("an import of Azure and of servers without keys", () => {
  const plan = planLiteLlmImport(`
model_list:
  - model_name: gpt-5
    litellm_params: { model: azure/gpt-5-eu, api_base: "https://Shop-EU.openai.azure.com/", api_key: os.environ/AZURE_OPENAI_API_KEY, api_version: "2025-01-01" }
  - model_name: gpt-5
    litellm_params: { model: azure/gpt-5-eu, api_base: "https://shop-eu.openai.azure.com", api_key: os.environ/AZURE_OPENAI_API_KEY }
  - model_name: gpt-us
    litellm_params: { model: azure/gpt-5, api_base: "https://shop-us.openai.azure.com" }
  - model_name: gateway
    litellm_params: { model: azure/gpt-5, api_base: "https://proxy.example/azure" }
  - model_name: local
    litellm_params: { model: ollama/llama3, api_base: "http://127.0.0.1:11434", api_key: none }
  - model_name: own
    litellm_params: { model: hosted_vllm/qwen, api_base: "http://gpu-2.lan/v1", api_key: "EMPTY" }
`);

  it("takes over the resource of Azure, and names a second one, for which there is no place", () => {
    expect(plan.configuration).toMatchObject({
      providers: { "azure-openai": { baseUrl: "https://shop-eu.openai.azure.com" } },
    });
    const addresses = plan.notes.filter((note) => note.includes("providers.azure-openai"));
    expect(addresses).toEqual([
      "gpt-us (azure/gpt-5): https://shop-us.openai.azure.com is a second address of azure-openai: providers.azure-openai.baseUrl has one",
      "gateway (azure/gpt-5): set providers.azure-openai.baseUrl for https://proxy.example/azure; its form is in the reference",
    ]);
  });

  it("stores no key that stands for none", () => {
    expect(plan.keys.map(({ provider_slug: slug }) => slug)).toEqual(["azure-openai"]);
  });
});
