import type { RoutesApi } from "@signalbox/client";
import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { ModelFields } from "../../components/model-fields.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { navigate } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import { firstElements } from "./route-elements.ts";

interface CreateRouteDialogProps {
  readonly api: RoutesApi;
  readonly gatewayId: string;
  readonly onClose: () => void;
}

/** Creates a route with one model, which the editor then extends. */
export function CreateRouteDialog({ api, gatewayId, onClose }: CreateRouteDialogProps) {
  const { page } = useAccountPaths();
  const [name, setName] = useState("");
  const [provider, setProvider] = useState("");
  const [model, setModel] = useState("");
  const create = async () => {
    const elements = firstElements(provider.trim(), model.trim());
    const route = await api.create({ name: name.trim(), elements });
    navigate(page("gateways", gatewayId, "routes", route.id));
  };
  return (
    <FormDialog title="Create route" verb="Create route" onSubmit={create} onClose={onClose}>
      <Field
        label="Name"
        hint="1 to 64 letters, digits, dots, underscores or hyphens. Clients call dynamic/name."
      >
        <input
          required
          pattern="[A-Za-z0-9._\-]{1,64}"
          title="1 to 64 letters, digits, dots, underscores or hyphens"
          value={name}
          placeholder="support"
          onChange={({ target }) => setName(target.value)}
        />
      </Field>
      <p className="muted small">
        The route begins with one model. Add conditions, shares and fallbacks next.
      </p>
      <div className="form-grid">
        <ModelFields provider={provider} model={model} onProvider={setProvider} onModel={setModel} />
      </div>
    </FormDialog>
  );
}
