import type { RoutesApi, RouteTrialResult, RouteVersion } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { useAction } from "../../http/use-action.ts";
import type { Elements } from "./route-elements.ts";
import { RouteEditor } from "./route-editor.tsx";
import { TryPanel } from "./try-panel.tsx";

interface RouteWorkbenchProps {
  readonly api: RoutesApi;
  readonly routeId: string;
  /** The version that the editor begins with. */
  readonly version: RouteVersion;
  readonly canEdit: boolean;
  readonly onSaved: (versionId: string) => void;
}

/** Edits and tries one version of a route. A save makes a new version; versions never change. */
export function RouteWorkbench({ api, routeId, version, canEdit, onSaved }: RouteWorkbenchProps) {
  const [saved] = useState(() => JSON.parse(version.data) as Elements);
  const [elements, setElements] = useState(saved);
  const [isBroken, setBroken] = useState(false);
  const [trial, setTrial] = useState<RouteTrialResult | null>(null);
  // A new number mounts the editor again, with forms and JSON of the saved graph.
  const [turn, setTurn] = useState(0);
  const isChanged = JSON.stringify(elements) !== JSON.stringify(saved);
  const edit = (next: Elements) => {
    setElements(next);
    setTrial(null);
  };
  const save = useAction(async (isDeployed: boolean) => {
    const { version_id: id } = await api.createVersion(routeId, elements);
    if (isDeployed) await api.deploy(routeId, id);
    onSaved(id);
  });
  return (
    <>
      <RouteEditor key={turn} elements={elements} way={trial?.way ?? []} onChange={edit} onBroken={setBroken}>
        {save.error !== null && <ErrorNotice error={save.error} />}
        {canEdit && (
          <div className="row">
            <Button
              kind="primary"
              isBusy={save.isBusy}
              disabled={!isChanged || isBroken}
              onClick={() => void save.run(true)}
            >
              Save and deploy
            </Button>
            <Button
              isBusy={save.isBusy}
              disabled={!isChanged || isBroken}
              onClick={() => void save.run(false)}
            >
              Save version
            </Button>
            {(isChanged || isBroken) && (
              <Button
                onClick={() => {
                  edit(saved);
                  setBroken(false);
                  setTurn(turn + 1);
                  save.clear();
                }}
              >
                Discard changes
              </Button>
            )}
          </div>
        )}
      </RouteEditor>
      <TryPanel
        api={api}
        routeId={routeId}
        elements={elements}
        versionId={isChanged ? null : version.version_id}
        result={trial}
        onResult={setTrial}
      />
    </>
  );
}
