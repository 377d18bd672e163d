import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";

interface TabsProps<Name extends string> {
  readonly label: string;
  readonly tabs: readonly { readonly name: Name; readonly title: string }[];
  readonly current: Name;
  readonly onChange: (name: Name) => void;
  readonly children: ReactNode;
}

/** Tabs within a page (ARIA tabs pattern): the arrow keys move between them. */
export function Tabs<Name extends string>({ label, tabs, current, onChange, children }: TabsProps<Name>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const index = tabs.findIndex(({ name }) => name === current);
    const next = (index + step + tabs.length) % tabs.length;
    onChange(tabs[next]?.name ?? current);
    list.current?.querySelectorAll("button")[next]?.focus();
  };
  return (
    <div className="stack">
      <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === current}
            aria-controls={`${id}-panel`}
            tabIndex={name === current ? 0 : -1}
            onClick={() => onChange(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`} className="stack">
        {children}
      </div>
    </div>
  );
}
