// oxlint-disable unicorn/no-thenable -- `then` is a member of Portkey's conditions
import { describe, expect, it } from "vitest";
import { BUILT_IN_PROVIDERS } from "../gateway/providers/built-in.ts";
import { compileCondition } from "../gateway/routes/condition.ts";
import { parseGraph } from "../gateway/routes/route-graph.ts";
import { factsOfTrial } from "../gateway/routes/route-facts.ts";
import { UsageError } from "./command.ts";
import { type PortkeyImport, planPortkeyImport } from "./portkey-config.ts";
import { PORTKEY_PROVIDERS } from "./portkey-providers.ts";
import type { PortkeyOptions } from "./portkey-target.ts";

const NO_OPTIONS = { name: "chat", model: null, virtualKeys: new Map<string, string>() };
const plan = (value: unknown, options: Partial<PortkeyOptions> = {}) =>
  planPortkeyImport(JSON.stringify(value), { ...NO_OPTIONS, ...options });

/** The checked graph of the only route. */
function graphOf({ routes: [route] }: PortkeyImport) {
  const { elements, start } = parseGraph([...(route?.elements ?? [])], () => true);
  const begin = elements.get(start);
  return { elements, start: begin?.type === "start" ? begin.next : "" };
}

const OPENAI = { provider: "openai", override_params: { model: "gpt-5" } };
const CLAUDE = { provider: "anthropic", override_params: { model: "claude-opus-4-5" } };
const GEMINI = { provider: "google", override_params: { model: "gemini-2.5-flash" } };

describe("an import of Portkey's configurations", () => {
  it("makes a chain of models of a fallback, with retries and timeouts that targets inherit", () => {
    const result = plan({
      strategy: { mode: "fallback" },
      retry: { attempts: 5 },
      request_timeout: 9000,
      targets: [
        { ...OPENAI, retry: { attempts: 1 } },
        { ...CLAUDE, request_timeout: 30_000 },
      ],
    });
    expect(result.routes.map(({ name }) => name)).toEqual(["chat"]);
    const { elements, start } = graphOf(result);
    const first = elements.get(start);
    expect(first).toMatchObject({ provider: "openai", model: "gpt-5", retries: 1, timeoutMs: 9000 });
    const second = first?.type === "model" ? elements.get(first.fallback ?? "") : undefined;
    expect(second).toMatchObject({ model: "claude-opus-4-5", retries: 4, timeoutMs: 30_000, fallback: null });
    expect(result.notes).toEqual([expect.stringContaining("at most 4")]);
  });

  it("shares calls by weights, and a failed share goes on with what surrounds it only", () => {
    const result = plan({
      strategy: { mode: "fallback" },
      targets: [
        {
          strategy: { mode: "loadbalance" },
          targets: [
            { ...OPENAI, weight: 3 },
            { ...CLAUDE, weight: 1 },
            { ...CLAUDE, weight: 0 },
          ],
        },
        GEMINI,
      ],
    });
    const { elements, start } = graphOf(result);
    const share = elements.get(start);
    if (share?.type !== "percentage") throw new Error("no percentages");
    expect(share.shares.map(({ upTo }) => upTo)).toEqual([75, 100]);
    const fallbacks = share.shares.map(({ next }) => {
      const model = elements.get(next);
      return model?.type === "model" ? elements.get(model.fallback ?? "") : undefined;
    });
    expect(fallbacks).toEqual([
      expect.objectContaining({ provider: "google-ai-studio" }),
      expect.objectContaining({ provider: "google-ai-studio" }),
    ]);
    // Start, shares, three models and the end: both shares lead to one element.
    expect(elements.size).toBe(6);
  });

  it("turns conditions into those of routes, in their order, with the default last", () => {
    const result = plan({
      strategy: {
        mode: "conditional",
        conditions: [
          { query: { "metadata.plan": { $eq: "paid" } }, then: "large" },
          { query: { "params.model": "fast" }, then: "small" },
        ],
        default: "small",
      },
      targets: [
        { name: "large", ...CLAUDE },
        { name: "small", ...GEMINI },
      ],
    });
    const { elements, start } = graphOf(result);
    const first = elements.get(start);
    if (first?.type !== "conditional") throw new Error("no condition");
    const at = (metadata: Record<string, string>) => factsOfTrial({ metadata });
    expect([first.holds(at({ plan: "paid" })), first.holds(at({ plan: "free" }))]).toEqual([true, false]);
    expect(elements.get(first.yes)).toMatchObject({ model: "claude-opus-4-5" });
    const second = elements.get(first.no);
    if (second?.type !== "conditional") throw new Error("no second condition");
    // The model of a call is the name of the route, so the wish of the caller comes as metadata.
    expect(second.holds(at({ model: "fast" }))).toBe(true);
    expect(second.yes).toBe(second.no);
    expect(result.notes).toContain(
      "chat: conditions on params.model: callers name the route as their model, and send the other name in the metadata as model",
    );
  });

  it.each([
    [{ $ne: "paid" }, undefined, true],
    [{ $ne: "paid" }, "paid", false],
    [{ $nin: ["paid", "team"] }, undefined, true],
    [{ $nin: ["paid", "team"] }, "team", false],
    [{ $in: ["paid"] }, undefined, false],
    [{ $ne: "paid", $regex: "^f" }, "free", true],
  ])("a condition %j on %j is %j, also for calls without the value", (operand, value, holds) => {
    const { routes } = plan({
      strategy: { mode: "conditional", conditions: [{ query: { "metadata.plan": operand }, then: "a" }] },
      targets: [{ name: "a", ...OPENAI }],
    });
    const properties = routes[0]?.elements.find(({ type }) => type === "conditional")?.properties;
    const facts = factsOfTrial({ metadata: value === undefined ? {} : { plan: value } });
    expect(compileCondition(properties?.["conditions"])(facts)).toBe(holds);
  });

  it("names virtual keys with the command that stores them, and finds their providers", () => {
    const target = (key: string, model?: string) => ({
      virtual_key: key,
      ...(model === undefined ? {} : { override_params: { model } }),
    });
    const result = plan(
      {
        strategy: { mode: "fallback" },
        targets: [
          target("main-258f4d", "gpt-5"),
          target("team-77", "llama-4"),
          target("unknown-1", "own-model"),
          { override_params: { model: "@anthropic-prod/claude-opus-4-5" } },
          { provider: "@openai", override_params: { model: "gpt-5-mini" } },
        ],
      },
      { virtualKeys: new Map([["team-77", "groq"]]) },
    );
    const models = result.routes[0]?.elements.flatMap(({ type, properties }) =>
      type === "model" ? [`${String(properties?.["provider"])}/${String(properties?.["model"])}`] : [],
    );
    expect(models?.toSorted()).toEqual([
      "anthropic/claude-opus-4-5",
      "groq/llama-4",
      "openai/gpt-5",
      "openai/gpt-5-mini",
    ]);
    expect(result.notes).toEqual([
      "virtual key main-258f4d: keys cannot be read there: signalbox provider-keys create openai --alias main-258f4d --default on",
      "virtual key team-77: keys cannot be read there: signalbox provider-keys create groq --alias team-77 --default on",
      "chat.targets[2]: the provider of the virtual key unknown-1 is not in the file; give --virtual-key unknown-1=PROVIDER. The target was left out",
      "virtual key anthropic-prod: keys cannot be read there: signalbox provider-keys create anthropic --alias anthropic-prod --default on",
      "virtual key openai: keys cannot be read there: signalbox provider-keys create openai --alias openai --default on",
    ]);
  });

  it("needs a model for targets that leave it to the caller", () => {
    const config = { strategy: { mode: "fallback" }, targets: [{ provider: "openai" }, CLAUDE] };
    const without = plan(config);
    expect(without.notes[0]).toBe(
      "chat.targets[0]: openai gets the model of the caller, who names the route here: give --model NAME, or override_params.model. The target was left out",
    );
    expect(graphOf(without).elements.size).toBe(3);
    expect(graphOf(plan(config, { model: "gpt-5" })).elements.size).toBe(4);
    const none = plan({ strategy: { mode: "single" }, targets: [{ provider: "openai" }] });
    expect([none.routes, none.notes.at(-1)]).toEqual([[], "chat was left out: no target is left"]);
  });

  it("takes keys and addresses of targets, and names what has no counterpart", () => {
    const result = plan({
      provider: "openai",
      apiKey: "sk-of-the-file-1234",
      customHost: "http://gpu-1.lan:8000/v1",
      overrideParams: { model: "llama", temperature: 0 },
      inputGuardrails: [{ deny: true }],
      cache: { mode: "semantic", maxAge: 60 },
      retry: { attempts: 2, onStatusCodes: [418] },
    });
    expect(result.configuration).toEqual({
      providers: { "gpu-1-lan": { baseUrl: "http://gpu-1.lan:8000/v1" } },
    });
    expect(result.keys).toEqual([{ provider_slug: "gpu-1-lan", secret: "sk-of-the-file-1234" }]);
    expect(result.gateway).toEqual({ cache_ttl: 60 });
    expect(graphOf(result).elements.get(graphOf(result).start)).toMatchObject({
      provider: "gpu-1-lan",
      retries: 2,
    });
    expect(result.notes).toEqual([
      "chat: retry.on_status_codes [418]: 408, 429 and 5xx are tried again",
      "chat: not taken over: input_guardrails, override_params.temperature",
      "chat: cache.mode semantic: only equal requests are answered from the cache",
    ]);
    expect(JSON.stringify(result.notes)).not.toContain("sk-of");
  });

  it("gives each address of a host one provider", () => {
    const at = (customHost: string) => ({ ...OPENAI, customHost });
    const addresses = ["http://gpu.lan:8001/v1", "http://gpu.lan:8002/v1", "http://[::1]:8001/v1"];
    const targets = [...addresses, ...addresses].map(at);
    expect(plan({ strategy: { mode: "fallback" }, targets }).configuration).toEqual({
      providers: {
        "gpu-lan": { baseUrl: addresses[0] },
        "gpu-lan-2": { baseUrl: addresses[1] },
        "1": { baseUrl: addresses[2] },
      },
    });
  });

  it("sets the gateway only where all configurations agree, and says what callers send otherwise", () => {
    const one = (slug: string, cache?: object) => ({ slug, config: { ...OPENAI, ...(cache && { cache }) } });
    const same = plan([one("a", { mode: "simple", max_age: 60 }), one("b", { mode: "simple", max_age: 60 })]);
    expect(same.gateway).toEqual({ cache_ttl: 60 });
    const other = plan([one("a", { mode: "simple", max_age: 60 }), one("b")]);
    expect(other.gateway).toEqual({});
    expect(other.notes).toEqual(["a: cache: callers send the header gw-aig-cache-ttl: 60"]);
    const settings = plan({ retry: { attempts: 3 }, cache: { mode: "simple" } });
    expect([settings.routes, settings.gateway]).toEqual([[], { retry_max_attempts: 4 }]);
    expect(settings.notes).toEqual([
      "chat: cache without max_age: set a time with signalbox gateway set --cache-ttl",
    ]);
  });

  it("reads single configurations, answers of Portkey's interface, lists, and maps of names", () => {
    const names = (value: unknown) => plan(value).routes.map(({ name }) => name);
    expect(names(OPENAI)).toEqual(["chat"]);
    expect(names({ success: true, data: { config: OPENAI } })).toEqual(["chat"]);
    expect(names({ data: { slug: "pc-a", config: JSON.stringify(OPENAI) } })).toEqual(["pc-a"]);
    expect(
      names([
        { slug: "pc-a", name: "A", config: OPENAI },
        { name: "B b", config: OPENAI },
      ]),
    ).toEqual(["pc-a", "B-b"]);
    expect(names({ a: OPENAI, b: OPENAI })).toEqual(["a", "b"]);
    expect(plan({ data: [{ slug: "pc-a", name: "A" }] }).notes).toEqual([
      "pc-a: the list has no contents: read them with GET /v1/configs/pc-a",
    ]);
  });

  it.each([["no json"], ["[]"], ["{}"], ["3"], ['{"a":1}']])("refuses %s", (text) => {
    expect(() => planPortkeyImport(text, NO_OPTIONS)).toThrow(UsageError);
  });

  it.each([
    [{ strategy: { mode: "random" }, targets: [OPENAI] }, "the mode random is not known"],
    [
      {
        strategy: { mode: "conditional", conditions: [{ query: { "url.pathname": "/x" }, then: "a" }] },
        targets: [{ name: "a", ...OPENAI }],
      },
      "conditions on url.pathname have no counterpart",
    ],
    [
      {
        strategy: { mode: "conditional", conditions: [{ query: { "metadata.a": "b" }, then: "c" }] },
        targets: [OPENAI],
      },
      "no target has the name c",
    ],
    [
      {
        strategy: {
          mode: "conditional",
          conditions: [{ query: { "metadata.a": { $regex: "(?=x)" } }, then: "c" }],
        },
        targets: [{ name: "c", ...OPENAI }],
      },
      /^element "if-\d": /,
    ],
  ])("leaves out %j, with the reason", (config, reason) => {
    const { routes, notes } = plan(config);
    expect(routes).toEqual([]);
    const [note = ""] = notes.filter((one) => one.startsWith("chat was left out: "));
    expect(note.slice("chat was left out: ".length)).toMatch(reason);
  });

  it("a configuration that contains itself many times over is refused, not followed", () => {
    let config: object = OPENAI;
    for (let i = 0; i < 2000; i++) config = { strategy: { mode: "single" }, targets: [config] };
    expect(plan(config).notes.at(-1)).toMatch(/^chat was left out: targets are nested more than \d+ deep$/);
  });

  it("maps to providers that are known here", () => {
    const slugs = new Set(BUILT_IN_PROVIDERS.map(({ slug }) => slug));
    expect(Object.values(PORTKEY_PROVIDERS).filter((slug) => !slugs.has(slug))).toEqual([]);
  });
});
