import type { RoutesApi, RouteVersion } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { useAction } from "../../http/use-action.ts";

interface VersionTableProps {
  readonly api: RoutesApi;
  readonly routeId: string;
  readonly versions: readonly RouteVersion[];
  readonly shownId: string;
  readonly canEdit: boolean;
  readonly onOpen: (versionId: string) => void;
  readonly onDeployed: () => void;
}

/** The versions of a route, newest first. */
export function VersionTable(props: VersionTableProps) {
  const { api, routeId, versions, shownId, canEdit, onOpen, onDeployed } = props;
  const deploy = useAction(async (versionId: string) => {
    await api.deploy(routeId, versionId);
    onDeployed();
  });
  return (
    <section className="section" aria-labelledby="versions-title">
      <h2 id="versions-title">Versions</h2>
      {deploy.error !== null && <ErrorNotice error={deploy.error} />}
      <Table
        label="Versions"
        rows={versions}
        keyOf={({ version_id: id }) => id}
        columns={[
          { title: "Version", cell: ({ version_id: id }) => <code>{id}</code> },
          { title: "Saved", cell: ({ created_at: at }) => <Time at={at} /> },
          {
            title: "State",
            cell: ({ version_id: id, active, is_valid: isValid }) => (
              <span className="badges">
                {active === "true" && <Badge tone="good">deployed</Badge>}
                {id === shownId && <Badge tone="accent">shown</Badge>}
                {!isValid && <Badge tone="bad">names an unknown provider</Badge>}
              </span>
            ),
          },
          {
            title: "Actions",
            isAction: true,
            cell: ({ version_id: id, active }) => (
              <span className="row nowrap-row">
                {id !== shownId && (
                  <Button size="small" onClick={() => onOpen(id)}>
                    Open<span className="visually-hidden"> {id}</span>
                  </Button>
                )}
                {canEdit && active !== "true" && (
                  <Button size="small" isBusy={deploy.isBusy} onClick={() => void deploy.run(id)}>
                    Deploy<span className="visually-hidden"> {id}</span>
                  </Button>
                )}
              </span>
            ),
          },
        ]}
      />
    </section>
  );
}
