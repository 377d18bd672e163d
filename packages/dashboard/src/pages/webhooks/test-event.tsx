import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { useHasPermission } from "../../session/session.ts";
import { TestEventDialog } from "./test-event-dialog.tsx";
import type { Source } from "./webhook.ts";

/** The button that opens the dialog for a test event. */
export function TestEvent({ source, onSent }: { readonly source: Source; readonly onSent: () => void }) {
  const canEdit = useHasPermission("webhooks.edit");
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="primary" disabled={!canEdit || problemOf(source) !== null} onClick={() => setOpen(true)}>
        Send test event
      </Button>
      {isOpen && <TestEventDialog source={source} onSent={onSent} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Why no test event can be sent, if so. */
export function CannotSend({ source }: { readonly source: Source }) {
  const canEdit = useHasPermission("webhooks.edit");
  const problem = canEdit ? problemOf(source) : "Sending test events requires the webhooks.edit permission.";
  return problem === null ? null : <p className="notice notice-warn">{problem}</p>;
}

function problemOf({ kind, secrets, secret_variable: variable }: Source): string | null {
  if (secrets === 0) return `Test events require a secret. Set ${variable} and restart the service.`;
  return kind === "discord" ? "Only Discord has the private key that signs its deliveries." : null;
}
