import type { ProviderKey } from "@signalbox/client";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { share } from "../../format/number.ts";

const TONES: Readonly<Record<ProviderKey["status"], Tone>> = {
  active: "good",
  cooldown: "warn",
  invalid: "bad",
  disabled: "neutral",
};

interface KeysTableProps {
  readonly keys: readonly ProviderKey[];
  readonly canEdit: boolean;
  readonly onEdit: (key: ProviderKey) => void;
  readonly onToggle: (key: ProviderKey) => void;
  readonly onRemove: (key: ProviderKey) => void;
}

export function KeysTable({ keys, canEdit, onEdit, onToggle, onRemove }: KeysTableProps) {
  return (
    <Table
      label="Provider keys"
      rows={keys.toSorted((a, b) => a.provider_slug.localeCompare(b.provider_slug))}
      keyOf={({ id }) => id}
      columns={[
        { title: "Provider", cell: (key) => <strong>{key.provider_slug}</strong> },
        { title: "Key", cell: (key) => <code>{key.secret_preview}</code> },
        { title: "Used for", cell: (key) => <Use of={key} keys={keys} /> },
        { title: "Health", cell: (key) => <Health of={key} /> },
        { title: "Last used", isMinor: true, cell: (key) => <Time at={key.last_used_at} /> },
        {
          title: "Actions",
          isAction: true,
          cell: (key) =>
            canEdit && (
              <span className="row nowrap-row">
                <Button size="small" onClick={() => onEdit(key)}>
                  Edit
                  <Whose of={key} />
                </Button>
                <Button size="small" onClick={() => onToggle(key)}>
                  {key.disabled ? "Enable" : "Disable"}
                  <Whose of={key} />
                </Button>
                <Button size="small" onClick={() => onRemove(key)}>
                  Remove
                  <Whose of={key} />
                </Button>
              </span>
            ),
        },
      ]}
    />
  );
}

function Whose({ of: { provider_slug: provider, secret_preview: preview } }: { readonly of: ProviderKey }) {
  return (
    <span className="visually-hidden">
      {" "}
      {provider} {preview}
    </span>
  );
}

/** The share of the pool, the alias, and the models of a key. */
function Use({ of: key, keys }: { readonly of: ProviderKey; readonly keys: readonly ProviderKey[] }) {
  const pool = keys.filter((one) => one.provider_slug === key.provider_slug && isPooled(one));
  const total = pool.reduce((sum, one) => sum + one.weight, 0);
  return (
    <span className="badges">
      {isPooled(key) && (
        <Badge tone="accent">
          pool, weight {key.weight}
          {pool.length > 1 && ` (${share(key.weight, total)})`}
        </Badge>
      )}
      {key.alias !== "" && <Badge>alias {key.alias}</Badge>}
      {key.models.map((model) => (
        <Badge key={model}>{model}</Badge>
      ))}
      {key.rate_limit !== null && (
        <Badge>
          {key.rate_limit} calls per {key.rate_limit_period} s
        </Badge>
      )}
    </span>
  );
}

function isPooled({ alias, default_config: isDefault }: ProviderKey): boolean {
  return alias === "" || isDefault;
}

function Health({ of: key }: { readonly of: ProviderKey }) {
  return (
    <>
      <Badge tone={TONES[key.status]}>
        {key.status}
        {key.status === "cooldown" && <Time at={key.cooldown_until} isDue />}
      </Badge>
      {key.status === "invalid" && (
        <div className="muted small">The provider refused it. Edit it to use it again.</div>
      )}
      {key.refused_models.length > 0 && (
        <div className="muted small">Refused for {key.refused_models.join(", ")}.</div>
      )}
      {key.identity !== null && (
        <div className="muted small">
          Identity: {key.identity.source}
          {key.identity.expires_at !== null && (
            <>
              , until <Time at={key.identity.expires_at} isDue />
            </>
          )}
          {key.identity.error !== null && `. ${key.identity.error}`}
        </div>
      )}
    </>
  );
}
