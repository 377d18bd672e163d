/** One entry of the audit log with the members that the change set. */
import type { AuditEntry } from "@signalbox/client";
import { CodeBlock } from "../../components/code-block.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { changedMembers } from "./changed-members.ts";

export function AuditEntryDialog({
  entry,
  onClose,
}: {
  readonly entry: AuditEntry;
  readonly onClose: () => void;
}) {
  const { action, actor, resource, metadata } = entry;
  const changes = changedMembers(entry.before, entry.after);
  return (
    <Dialog title={`${action.type} ${resource.type}`} onClose={onClose} isWide>
      <DetailList
        items={[
          ["Time", <Time key="time" at={entry.when} as="exact" />],
          ["Actor", actor.type === "token" ? `${actor.name} (token ${actor.id})` : actor.type],
          ["Session", actor.session ?? "none"],
          ["Address", actor.ip ?? "–"],
          ["Outcome", `${action.outcome}${action.status === null ? "" : ` (${action.status})`}`],
          ["Message", action.message ?? "–"],
          ["Resource ID", entry.resource.id === "" ? "–" : entry.resource.id],
          ["Request ID", entry.request_id],
          ["User agent", metadata.user_agent ?? "–"],
        ]}
      />
      <CodeBlock
        label="Operation, resource and hash"
        code={[entry.operation, resource.path, `sha256 ${entry.hash}`].join("\n")}
      />
      {changes.length > 0 && (
        <Table
          label="Changed members"
          rows={changes}
          keyOf={({ name }) => name}
          columns={[
            { title: "Member", cell: ({ name }) => name },
            { title: "Before", cell: ({ before }) => <code>{before}</code> },
            { title: "After", cell: ({ after }) => <code>{after}</code> },
          ]}
        />
      )}
      {entry.request !== null && (
        <CodeBlock label="Request body" code={JSON.stringify(entry.request, null, 2)} />
      )}
    </Dialog>
  );
}
