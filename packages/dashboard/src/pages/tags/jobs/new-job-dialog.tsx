/** Starts a job that changes the tags of all resources that match the filters of a page. */
import type { ResourceQuery } from "@signalbox/client";
import { useState } from "react";
import { FormDialog } from "../../../components/form-dialog.tsx";
import { exactCount } from "../../../format/number.ts";
import { navigate } from "../../../routing/location.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../../session/session.ts";
import { type EditRow, emptyRow, TagEditRows, toEdit } from "../tag-edit-rows.tsx";

interface NewJobDialogProps {
  /** Empty for all tagged resources. */
  readonly query: ResourceQuery;
  readonly onClose: () => void;
}

export function NewJobDialog({ query, onClose }: NewJobDialogProps) {
  const { tags, id } = useAccount();
  const { page } = useAccountPaths();
  const [rows, setRows] = useState<readonly EditRow[]>(() => [emptyRow()]);
  const edit = toEdit(rows, undefined);
  const total = useResource(`matching ${id} ${JSON.stringify(query)}`, (signal) =>
    tags.countResources(query, { signal }),
  );
  const start = async () => {
    const all = Object.keys(query).length === 0 ? ({ all: true } as const) : {};
    const job = await tags.createJob({ operation: "patch", tags: edit, ...query, ...all });
    navigate(page("tags", "jobs", job.id));
  };
  return (
    <FormDialog
      title="Edit tags in the background"
      verb={total.value === undefined ? "Start" : `Change ${exactCount(total.value)} resources`}
      canSubmit={Object.keys(edit).length > 0 && total.value !== undefined}
      onSubmit={start}
      onClose={onClose}
      isWide
    >
      <p>
        A job changes every resource that matches when the job visits it, also those that are not on this
        page. It goes on when this page is closed, and can be cancelled; what it has changed then stays.
      </p>
      <TagEditRows rows={rows} onChange={setRows} />
    </FormDialog>
  );
}
