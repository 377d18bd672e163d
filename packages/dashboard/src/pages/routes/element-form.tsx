import type { RouteElement } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { EditRows } from "../../components/edit-rows.tsx";
import { Field } from "../../components/field.tsx";
import { ConditionFields, ModelFields, RateFields } from "./property-fields.tsx";
import {
  type Elements,
  outputsOf,
  removeElement,
  renameElement,
  replaceElement,
  withOutput,
} from "./route-elements.ts";

interface ElementFormProps {
  readonly element: RouteElement;
  readonly elements: Elements;
  readonly onChange: (elements: Elements, selected: string | null) => void;
}

/** Edits one element: its id, its properties, and where its outputs lead. The parent gives it a key for each element. */
export function ElementForm({ element, elements, onChange }: ElementFormProps) {
  const { id, type } = element;
  const replace = (changed: RouteElement) => onChange(replaceElement(elements, changed), id);
  return (
    <div className="stack">
      <div className="row spread">
        <h3>
          {id} <span className="muted small">{type}</span>
        </h3>
        {type !== "start" && (
          <Button size="small" onClick={() => onChange(removeElement(elements, id), null)}>
            Remove element
          </Button>
        )}
      </div>
      <IdField element={element} elements={elements} onChange={onChange} />
      {type === "model" && <ModelFields element={element} onChange={replace} />}
      {(type === "rate" || type === "rate_limit") && <RateFields element={element} onChange={replace} />}
      {type === "conditional" && <ConditionFields element={element} onChange={replace} />}
      {type === "percentage" ? (
        <PercentageOutputs element={element} elements={elements} onChange={replace} />
      ) : (
        outputsOf(element).map((name) => (
          <Field key={name} label={`Output ${name}`}>
            <TargetSelect
              of={element}
              elements={elements}
              target={element.outputs?.[name]?.elementId ?? ""}
              onChange={(target) => replace(withOutput(element, name, target === "" ? null : target))}
            />
          </Field>
        ))
      )}
    </div>
  );
}

/** The id changes when the field is left, and only to a free one: outputs refer to elements by id. */
function IdField({ element: { id }, elements, onChange }: ElementFormProps) {
  const [text, setText] = useState(id);
  const wanted = text.trim();
  const isFree = wanted === id || !elements.some((one) => one.id === wanted);
  const commit = () => {
    if (wanted === "" || !isFree) setText(id);
    else if (wanted !== id) onChange(renameElement(elements, id, wanted), wanted);
  };
  return (
    <Field label="Id" hint={isFree ? undefined : "Another element has this id."}>
      <input
        value={text}
        spellCheck={false}
        aria-invalid={!isFree || undefined}
        onChange={({ target }) => setText(target.value)}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key === "Enter") commit();
        }}
      />
    </Field>
  );
}

interface TargetSelectProps {
  readonly of: RouteElement;
  readonly elements: Elements;
  readonly target: string;
  readonly onChange: (target: string) => void;
  /** Set by Field. */
  readonly id?: string;
}

function TargetSelect({ of, elements, target, onChange, id }: TargetSelectProps) {
  const targets = elements.filter((one) => one.type !== "start" && one.id !== of.id);
  const isKnown = target === "" || targets.some((one) => one.id === target);
  return (
    <select id={id} value={target} onChange={(event) => onChange(event.target.value)}>
      <option value="">nowhere</option>
      {!isKnown && <option value={target}>{target} (does not exist)</option>}
      {targets.map((one) => (
        <option key={one.id} value={one.id}>
          {one.id}
        </option>
      ))}
    </select>
  );
}

interface PercentageOutputsProps {
  readonly element: RouteElement;
  readonly elements: Elements;
  readonly onChange: (element: RouteElement) => void;
}

/** The names of these outputs are the shares. Rows are kept here, because two of them may have one name while it is typed. */
function PercentageOutputs({ element, elements, onChange }: PercentageOutputsProps) {
  const [rows, setRows] = useState(() =>
    Object.entries(element.outputs ?? {}).map(([name, { elementId }]) => ({ name, target: elementId })),
  );
  const change = (changed: readonly { name: string; target: string }[]) => {
    setRows([...changed]);
    const used = changed.filter(({ name, target }) => name.trim() !== "" && target !== "");
    onChange({
      ...element,
      outputs: Object.fromEntries(used.map(({ name, target }) => [name.trim(), { elementId: target }])),
    });
  };
  return (
    <EditRows
      legend="Shares"
      hint="10%, 33.4% …, and else for the rest. All shares together are 100%."
      noun="share"
      rows={rows}
      blank={{ name: "", target: "" }}
      onChange={change}
    >
      {(row, edit) => (
        <>
          <Field label="Share">
            <input
              value={row.name}
              placeholder="10%"
              onChange={({ target }) => edit({ name: target.value })}
            />
          </Field>
          <Field label="Leads to">
            <TargetSelect
              of={element}
              elements={elements}
              target={row.target}
              onChange={(target) => edit({ target })}
            />
          </Field>
        </>
      )}
    </EditRows>
  );
}
