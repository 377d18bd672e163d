/** A provider key, as a form edits it. */
import type { ProviderKey, ProviderKeyChange } from "@signalbox/client";
import { parseLines } from "../../format/loose-value.ts";

export interface KeyDraft {
  readonly provider: string;
  readonly source: "secret" | "reference";
  /** Empty in an edit: the stored key stays. */
  readonly secret: string;
  /** `env:NAME` or `file:PATH`. */
  readonly reference: string;
  readonly alias: string;
  readonly isDefault: boolean;
  readonly weight: string;
  /** One glob in each line. */
  readonly models: string;
  readonly rateLimit: string;
  readonly ratePeriod: string;
}

export const BLANK_KEY: KeyDraft = {
  provider: "",
  source: "secret",
  secret: "",
  reference: "",
  alias: "",
  isDefault: false,
  weight: "1",
  models: "",
  rateLimit: "",
  ratePeriod: "60",
};

export function toKeyDraft(key: ProviderKey): KeyDraft {
  const isReference = /^(env|file):/.test(key.secret_id);
  return {
    provider: key.provider_slug,
    source: isReference ? "reference" : "secret",
    secret: "",
    reference: isReference ? key.secret_id : "",
    alias: key.alias,
    isDefault: key.default_config,
    weight: String(key.weight),
    models: key.models.join("\n"),
    rateLimit: key.rate_limit === null ? "" : String(key.rate_limit),
    ratePeriod: String(key.rate_limit_period),
  };
}

export function fromKeyDraft(draft: KeyDraft): ProviderKeyChange {
  return {
    alias: draft.alias.trim(),
    default_config: draft.alias.trim() !== "" && draft.isDefault,
    ...credentialOf(draft),
    weight: Number(draft.weight),
    models: parseLines(draft.models),
    rate_limit: draft.rateLimit === "" ? null : Number(draft.rateLimit),
    rate_limit_period: Number(draft.ratePeriod),
  };
}

/** A reference that did not change is sent again; a stored key is never shown, so it is sent only when it was typed. */
function credentialOf({ source, secret, reference }: KeyDraft): ProviderKeyChange {
  if (source === "reference") return { secret_id: reference.trim() };
  return secret === "" ? {} : { secret };
}
