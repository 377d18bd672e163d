import type { ProviderKey } from "@signalbox/client";
import { expect, it } from "vitest";
import { BLANK_KEY, fromKeyDraft, toKeyDraft } from "./key-draft.ts";

const KEY: ProviderKey = {
  id: "01k",
  alias: "main",
  default_config: true,
  gateway_id: null,
  provider_slug: "openai",
  secret_id: "01k",
  secret_preview: "…abcd",
  weight: 3,
  models: ["gpt-5*"],
  rate_limit: 10,
  rate_limit_period: 60,
  disabled: false,
  status: "active",
  cooldown_until: null,
  refused_models: [],
  identity: null,
  last_used_at: null,
  created_at: "2026-01-01T00:00:00Z",
  modified_at: "2026-01-01T00:00:00Z",
};

const MEMBERS = {
  alias: "main",
  default_config: true,
  weight: 3,
  models: ["gpt-5*"],
  rate_limit: 10,
  rate_limit_period: 60,
};

it("an edit sends no credential that was not typed", () => {
  for (const preview of ["…abcd", "$OPENAI_API_KEY", "file:/run/secrets/openai_api_key"]) {
    const before = toKeyDraft({ ...KEY, secret_preview: preview });
    expect(fromKeyDraft(before, before)).toEqual(MEMBERS);
  }
});

it("an edit can replace the key by another, and a variable by a stored key", () => {
  const stored = toKeyDraft(KEY);
  expect(fromKeyDraft({ ...stored, secret: "sk-new" }, stored)).toEqual({ ...MEMBERS, secret: "sk-new" });
  const variable = toKeyDraft({ ...KEY, secret_preview: "$OPENAI_API_KEY" });
  expect(variable).toMatchObject({ source: "reference", reference: "env:OPENAI_API_KEY" });
  expect(fromKeyDraft({ ...variable, source: "secret", secret: "sk-new" }, variable)).toEqual({
    ...MEMBERS,
    secret: "sk-new",
  });
  expect(fromKeyDraft({ ...variable, reference: "env:OPENAI_API_KEY_B" }, variable)).toMatchObject({
    secret_id: "env:OPENAI_API_KEY_B",
  });
});

it("a new key of a pool has no alias and is no default", () => {
  const draft = { ...BLANK_KEY, provider: "openai", secret: "sk-new", isDefault: true };
  expect(fromKeyDraft(draft)).toMatchObject({
    alias: "",
    default_config: false,
    secret: "sk-new",
    rate_limit: null,
  });
});
