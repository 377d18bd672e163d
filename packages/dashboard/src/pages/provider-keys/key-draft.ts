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
  const reference = referenceOf(key);
  return {
    provider: key.provider_slug,
    source: reference === "" ? "secret" : "reference",
    secret: "",
    reference,
    alias: key.alias,
    isDefault: key.default_config,
    weight: String(key.weight),
    models: key.models.join("\n"),
    rateLimit: key.rate_limit === null ? "" : String(key.rate_limit),
    ratePeriod: String(key.rate_limit_period),
  };
}

/** `before` is the draft that an edit began with: a credential that did not change is not sent. */
export function fromKeyDraft(draft: KeyDraft, before: KeyDraft = BLANK_KEY): ProviderKeyChange {
  return {
    alias: draft.alias.trim(),
    default_config: draft.alias.trim() !== "" && draft.isDefault,
    ...credentialOf(draft, before),
    weight: Number(draft.weight),
    models: parseLines(draft.models),
    rate_limit: draft.rateLimit === "" ? null : Number(draft.rateLimit),
    rate_limit_period: Number(draft.ratePeriod),
  };
}

function credentialOf({ source, secret, reference }: KeyDraft, before: KeyDraft): ProviderKeyChange {
  if (source === "secret") return secret === "" ? {} : { secret };
  return reference.trim() === before.reference ? {} : { secret_id: reference.trim() };
}

/** The variable or file of a key; empty for a stored one, whose preview begins with an ellipsis. */
function referenceOf({ secret_preview: preview }: ProviderKey): string {
  if (preview.startsWith("$")) return `env:${preview.slice(1)}`;
  return preview.startsWith("file:") ? preview : "";
}
