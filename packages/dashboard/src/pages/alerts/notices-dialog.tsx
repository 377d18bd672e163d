import type { AlertNotice } from "@signalbox/client";
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { request } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";

interface NoticesDialogProps {
  /** Of the alert. */
  readonly path: string;
  readonly name: string;
  readonly canTest: boolean;
  readonly onClose: () => void;
}

/** The last notices of an alert and whether they were delivered. */
export function NoticesDialog({ path, name, canTest, onClose }: NoticesDialogProps) {
  const notices = useList<AlertNotice>(`${path}/notices`);
  const [error, setError] = useState<Error | null>(null);
  const test = () => {
    setError(null);
    request(`${path}/test`, { method: "POST", body: {} }).then(notices.reload, (failure: unknown) =>
      setError(failure instanceof Error ? failure : new Error(String(failure))),
    );
  };
  return (
    <Dialog title={`Notices of ${name}`} onClose={onClose}>
      {error !== null && <ErrorNotice error={error} />}
      <ResourceView of={notices}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="muted">No notice was sent yet.</p>
          ) : (
            <Table
              label="Notices"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                { title: "Time", cell: ({ created_at }) => <Time at={created_at} /> },
                { title: "Kind", cell: ({ kind }) => kind },
                { title: "Receiver", cell: ({ receiver }) => receiver },
                { title: "Delivery", cell: (notice) => <Delivery notice={notice} /> },
              ]}
            />
          )
        }
      </ResourceView>
      {canTest && <Button onClick={test}>Send test notice</Button>}
    </Dialog>
  );
}

function Delivery({ notice }: { readonly notice: AlertNotice }) {
  if (notice.delivered_at !== null) return <Badge tone="good">delivered</Badge>;
  return (
    <>
      <Badge tone={notice.next_attempt_at === null ? "bad" : "warn"}>
        {notice.next_attempt_at === null ? "failed" : "waiting"}
      </Badge>
      <div className="muted small">{notice.problem}</div>
    </>
  );
}
