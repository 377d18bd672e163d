import type { FilterExplanation, ListedWebhookRoute, RoutedEvent, RouteSettings } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { FormDialog } from "../../../components/form-dialog.tsx";
import { SelectField } from "../../../components/select-field.tsx";
import { exactTime } from "../../../format/time.ts";
import { withQuery } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useList } from "../../../http/use-list.ts";
import { useAccount, useAccountPaths } from "../../../session/session.ts";
import type { Delivery } from "../webhook.ts";

const EXAMPLE = {
  when: { body: { type: { $startsWith: "invoice." } } },
  to: { url: "https://receiver.example.com/hooks" },
  retry: { strategy: "exponential", intervalMs: 5000, count: 8 },
};
const KEYS = ["when", "to", "dedupe", "delay", "retry", "rate", "order"] as const;
const MAX_TRIED = 50;

interface RouteDialogProps {
  readonly source: string;
  /** Null for a new one. */
  readonly route: ListedWebhookRoute | null;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** The settings of a route as JSON, and its filter tried on a delivery that is stored. */
export function RouteDialog({ source, route, onSaved, onClose }: RouteDialogProps) {
  const account = useAccount();
  const [name, setName] = useState(route?.name ?? "");
  const [text, setText] = useState(() =>
    JSON.stringify(route === null ? EXAMPLE : settingsOf(route), null, 2),
  );
  const settings = parse(text);
  const isFixed = route?.defined_in === "file";
  const save = async () => {
    if (settings === null || isFixed) return;
    await account.webhooks.routing.putRoute(source, name, settings);
    onSaved();
  };
  return (
    <FormDialog
      title={route === null ? `Add a route to ${source}` : `Route ${route.name}`}
      verb={isFixed ? "Close" : "Save"}
      onSubmit={save}
      onClose={onClose}
      canSubmit={isFixed || (settings !== null && /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name))}
      isWide
    >
      {isFixed && (
        <p className="muted">The configuration file defines this route. Change it there and restart.</p>
      )}
      {route === null && (
        <Field label="Name" hint="Lower-case letters, digits, _ and -.">
          <input value={name} onChange={({ target }) => setName(target.value)} required />
        </Field>
      )}
      <Field
        label="Settings"
        hint={
          settings === null
            ? "This is not valid JSON."
            : "when (body, headers, query, path), to (agent, object, url or listen), retry, rate, delay, dedupe, order. [secret] keeps a stored secret."
        }
      >
        <textarea
          className="code-input"
          rows={14}
          spellCheck={false}
          value={text}
          readOnly={isFixed}
          onChange={({ target }) => setText(target.value)}
        />
      </Field>
      <TryOut source={source} settings={settings} />
    </FormDialog>
  );
}

/** "Would match, because …": the draft against a delivery of the source, whether it was stored for routes or its agent received it at once. */
function TryOut({ source, settings }: { readonly source: string; readonly settings: RouteSettings | null }) {
  const account = useAccount();
  const { api } = useAccountPaths();
  const query = { source, limit: MAX_TRIED };
  const events = useList<RoutedEvent>(withQuery(api("webhooks", "events"), query));
  const listed = useList<Delivery>(withQuery(api("webhooks", "deliveries"), query));
  const [chosen, setChosen] = useState("");
  const [found, setFound] = useState<FilterExplanation | null>(null);
  const deliveries = toTry(events.value ?? [], listed.value ?? []);
  const delivery = chosen === "" ? (deliveries[0]?.id ?? "") : chosen;
  const tryOut = useAction(async () => {
    const [explained] = await account.webhooks.routing.tryFilters(source, {
      delivery,
      when: settings?.when ?? {},
    });
    setFound(explained ?? null);
  });
  if (deliveries.length === 0)
    return (
      <p className="muted small">The filter can be tried as soon as this source has received a delivery.</p>
    );
  return (
    <div className="try-out">
      <SelectField
        label="Try the filter on"
        value={delivery}
        options={deliveries.map(({ id, type, at }) => [id, `${type}, ${exactTime(Date.parse(at))}`])}
        onChange={(id) => {
          setChosen(id);
          setFound(null);
        }}
      />
      <Button isBusy={tryOut.isBusy} disabled={settings === null} onClick={() => void tryOut.run()}>
        Try
      </Button>
      {tryOut.error !== null && <ErrorNotice error={tryOut.error} />}
      {found !== null && (
        <p role="status" className={found.verdict === "match" ? "try-match" : "try-mismatch"}>
          {found.because}
        </p>
      )}
    </div>
  );
}

/** Newest first. A delivery that was stored for routes has no agent, and its events name it. */
function toTry(events: readonly RoutedEvent[], listed: readonly Delivery[]) {
  const all = [
    ...events.map(({ delivery: id, type, received_at: at }) => ({ id, type, at })),
    ...listed
      .filter(({ agent, status }) => agent !== "" && status !== "rejected")
      .map(({ id, type, received_at: at }) => ({ id, type, at })),
  ];
  const unique = [...new Map(all.map((one) => [one.id, one])).values()];
  return unique.sort((a, b) => b.at.localeCompare(a.at)).slice(0, MAX_TRIED);
}

function settingsOf(route: ListedWebhookRoute): object {
  return Object.fromEntries(KEYS.flatMap((key) => (route[key] === undefined ? [] : [[key, route[key]]])));
}

function parse(text: string): RouteSettings | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && "to" in value ? (value as RouteSettings) : null;
  } catch {
    return null;
  }
}
