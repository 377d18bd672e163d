/** Moves an instance to a node that the user selects, or to any other one. */
import { useState } from "react";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { read, request } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";

interface MoveDialogProps {
  readonly name: string;
  /** Of the instance in the management interface. */
  readonly path: string;
  /** The node that has the instance; null if none has. */
  readonly node: string | null;
  /** Called with the name of the node that has the instance now. */
  readonly onMoved: (node: string) => void;
  readonly onClose: () => void;
}

interface Target {
  readonly id: string;
  readonly name: string;
}

const ANY = "";

export function MoveDialog({ name, path, node, onMoved, onClose }: MoveDialogProps) {
  const targets = useResource(`${path}/move`, (signal) => read<readonly Target[]>(`${path}/move`, signal));
  const [to, setTo] = useState(ANY);
  const others = (targets.value ?? []).filter((target) => target.name !== node);
  const move = async () => {
    const body = to === ANY ? {} : { to };
    const { result } = await request<{ readonly node: string }>(`${path}/move`, { method: "POST", body });
    onMoved(result.node);
  };
  return (
    <FormDialog
      title={`Move ${name}`}
      verb="Move"
      onSubmit={move}
      onClose={onClose}
      canSubmit={others.length > 0}
    >
      <p>
        {node === null
          ? "No node has the instance at the moment."
          : `The running turn ends on ${node}. The instance continues on the other node; events and connections follow it.`}
      </p>
      {targets.error !== null && <ErrorNotice error={targets.error} onRetry={targets.reload} />}
      {targets.value !== undefined && others.length === 0 ? (
        <p role="status">No other node of the cluster is up.</p>
      ) : (
        <Field label="Node">
          <select value={to} onChange={({ target }) => setTo(target.value)}>
            <option value={ANY}>Any other node</option>
            {others.map((target) => (
              <option key={target.id} value={hasTwin(target, others) ? target.id : target.name}>
                {hasTwin(target, others) ? `${target.name} (id ${target.id})` : target.name}
              </option>
            ))}
          </select>
        </Field>
      )}
    </FormDialog>
  );
}

/** Two nodes may have the same name: then the id selects one. */
function hasTwin({ id, name }: Target, all: readonly Target[]): boolean {
  return all.some((other) => other.name === name && other.id !== id);
}
