import type { DynamicRoute, RoutesApi } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { navigate } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";

interface RouteActionsProps {
  readonly api: RoutesApi;
  readonly route: DynamicRoute;
  readonly onChange: () => void;
}

export function RouteActions({ api, route, onChange }: RouteActionsProps) {
  const { page } = useAccountPaths();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const [name, setName] = useState(route.name);
  const close = () => setDialog(null);
  return (
    <>
      <Button
        onClick={() => {
          setName(route.name);
          setDialog("rename");
        }}
      >
        Rename
      </Button>
      <Button onClick={() => setDialog("delete")}>Delete</Button>
      {dialog === "rename" && (
        <FormDialog
          title={`Rename ${route.name}`}
          verb="Rename"
          onSubmit={async () => {
            await api.rename(route.id, name.trim());
            onChange();
          }}
          onClose={close}
        >
          <Field label="Name" hint="Clients that call the old name are rejected.">
            <input required maxLength={64} value={name} onChange={({ target }) => setName(target.value)} />
          </Field>
        </FormDialog>
      )}
      {dialog === "delete" && (
        <ConfirmDialog
          title={`Delete ${route.name}?`}
          verb="Delete"
          onConfirm={async () => {
            await api.delete(route.id);
            navigate(page("gateways", route.gateway_id, "routes"));
          }}
          onClose={close}
        >
          <p>Calls of dynamic/{route.name} are rejected immediately. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
