import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { count } from "../../format/number.ts";
import { request } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { useAccountPaths } from "../../session/session.ts";
import { EditPreview, type ItemOutcome } from "./edit-preview.tsx";
import { type EditRow, emptyRow, TagEditRows, toEdit } from "./tag-edit-rows.tsx";
import type { TagEdit, TaggedResource } from "./tagged-resource.ts";

/** Items of one request. */
const MAX_ITEMS = 1000;

interface EditTagsDialogProps {
  readonly resources: readonly TaggedResource[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Edits the tags of one or more resources. The changes are previewed with a dry run before they are applied. */
export function EditTagsDialog({ resources: selected, onClose, onDone }: EditTagsDialogProps) {
  const { api } = useAccountPaths();
  // Those that the user selected: the page clears its selection when a part of them is changed.
  const [resources] = useState(selected);
  const [rows, setRows] = useState<readonly EditRow[]>(() => initialRows(resources));
  const [preview, setPreview] = useState<readonly ItemOutcome[] | null>(null);
  const edit = toEdit(rows, resources.length === 1 ? resources[0]?.tags : undefined);
  const isEmpty = Object.keys(edit).length === 0;
  const [sent, setSent] = useState(0);
  const send = async (dryRun: boolean) => {
    const outcomes: ItemOutcome[] = [];
    for (let from = 0; from < resources.length; from += MAX_ITEMS) {
      setSent(from);
      const items = resources.slice(from, from + MAX_ITEMS).map((resource) => toItem(resource, edit));
      const { result } = await request<ItemOutcome[]>(api("tags", "bulk"), {
        method: "POST",
        body: { items, dry_run: dryRun },
      });
      outcomes.push(...result);
    }
    return outcomes;
  };
  const previewEdit = useAction(async () => setPreview(await send(true)));
  const apply = useAction(async () => {
    // If a later request fails, earlier ones have changed resources.
    const outcomes = await send(false).finally(onDone);
    if (outcomes.every(({ success }) => success)) onClose();
    else setPreview(outcomes);
  });
  const title =
    resources.length === 1
      ? `Edit tags of ${resources[0]?.name ?? ""}`
      : `Edit tags of ${count(resources.length)} resources`;
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <TagEditRows
        rows={rows}
        onChange={(next) => {
          setPreview(null);
          setRows(next);
        }}
      />
      {preview !== null && <EditPreview resources={resources} outcomes={preview} />}
      {(previewEdit.error ?? apply.error) !== null && (
        <ErrorNotice error={previewEdit.error ?? apply.error ?? new Error("The request failed.")} />
      )}
      {resources.length > MAX_ITEMS && (previewEdit.isBusy || apply.isBusy) && (
        <p role="status">
          {count(sent)} of {count(resources.length)} resources…
        </p>
      )}
      <div className="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        {preview === null ? (
          <Button
            kind="primary"
            disabled={isEmpty}
            isBusy={previewEdit.isBusy}
            onClick={() => void previewEdit.run()}
          >
            Preview
          </Button>
        ) : (
          <Button
            kind="primary"
            isBusy={apply.isBusy}
            disabled={!preview.some(({ success }) => success)}
            onClick={() => void apply.run()}
          >
            Apply
          </Button>
        )}
      </div>
    </Dialog>
  );
}

/** One resource: its tags and an empty row. Several resources: only an empty row, because their tags can differ. */
function initialRows(resources: readonly TaggedResource[]): EditRow[] {
  const [only] = resources;
  const own = resources.length === 1 && only !== undefined ? Object.entries(only.tags) : [];
  return [...own.map(([key, value]) => ({ ...emptyRow(), key, value })), emptyRow()];
}

/** Includes the ETag that the user saw, so a concurrent change is not overwritten. */
function toItem(resource: TaggedResource, tags: TagEdit): object {
  return {
    operation: "patch",
    resource_type: resource.type,
    resource_id: resource.id,
    ...(resource.worker_id === undefined ? {} : { worker_id: resource.worker_id }),
    ...(resource.access_application_id === undefined
      ? {}
      : { access_application_id: resource.access_application_id }),
    ...(resource.etag === "" ? {} : { if_match: `"${resource.etag}"` }),
    tags,
  };
}
