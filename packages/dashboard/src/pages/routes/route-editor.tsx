import { type ReactNode, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Field } from "../../components/field.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { ElementForm } from "./element-form.tsx";
import {
  addElement,
  ELEMENT_TYPES,
  type Elements,
  type ElementType,
  parseElements,
} from "./route-elements.ts";
import { RouteGraph, type Way } from "./route-graph.tsx";

interface RouteEditorProps {
  readonly elements: Elements;
  readonly way: Way;
  readonly onChange: (elements: Elements) => void;
  /** The text of the JSON view is no graph, so that the graph shown is not what the user wrote. */
  readonly onBroken: (isBroken: boolean) => void;
  /** Buttons below the editor. */
  readonly children: ReactNode;
}

const VIEWS = [
  { name: "graph", title: "Graph" },
  { name: "json", title: "JSON" },
] as const;

/** A drawing of the graph beside a form for the selected element, or the graph as JSON. */
export function RouteEditor({ elements, way, onChange, onBroken, children }: RouteEditorProps) {
  const [view, setView] = useState<"graph" | "json">("graph");
  const [selected, setSelected] = useState<string | null>(null);
  const [type, setType] = useState<ElementType>("model");
  const element = elements.find(({ id }) => id === selected);
  const add = () => {
    const added = addElement(elements, type);
    onChange(added.elements);
    setSelected(added.id);
  };
  const show = (name: "graph" | "json") => {
    // Text that is no graph is dropped with its view.
    onBroken(false);
    setView(name);
  };
  return (
    <section className="panel" aria-label="Editor">
      <Tabs label="View" tabs={VIEWS} current={view} onChange={show}>
        {view === "json" ? (
          <JsonView elements={elements} onChange={onChange} onBroken={onBroken} />
        ) : (
          <div className="columns">
            <RouteGraph elements={elements} selected={selected} onSelect={setSelected} way={way} />
            <div className="stack">
              <div className="row route-add">
                <Field label="New element">
                  <select value={type} onChange={({ target }) => setType(target.value as ElementType)}>
                    {ELEMENT_TYPES.map((one) => (
                      <option key={one}>{one}</option>
                    ))}
                  </select>
                </Field>
                <Button onClick={add}>Add element</Button>
              </div>
              {element === undefined ? (
                <p className="muted">Select an element of the graph to edit it.</p>
              ) : (
                <ElementForm
                  key={element.id}
                  element={element}
                  elements={elements}
                  onChange={(changed, id) => {
                    onChange(changed);
                    setSelected(id);
                  }}
                />
              )}
            </div>
          </div>
        )}
      </Tabs>
      {children}
    </section>
  );
}

type JsonViewProps = Pick<RouteEditorProps, "elements" | "onChange" | "onBroken">;

function JsonView({ elements, onChange, onBroken }: JsonViewProps) {
  const [text, setText] = useState(() => JSON.stringify(elements, null, 2));
  const [error, setError] = useState<string | null>(null);
  const edit = (next: string) => {
    setText(next);
    try {
      onChange(parseElements(next));
      setError(null);
      onBroken(false);
    } catch (cause) {
      setError(cause instanceof Error ? cause.message : String(cause));
      onBroken(true);
    }
  };
  return (
    <>
      <Field label="Elements">
        <textarea
          className="route-json"
          value={text}
          spellCheck={false}
          aria-invalid={error !== null || undefined}
          onChange={({ target }) => edit(target.value)}
        />
      </Field>
      {error !== null && (
        <p className="notice notice-bad" role="alert">
          {error}
        </p>
      )}
    </>
  );
}
