/** The command palette: a text field over a list (ARIA combobox pattern) in a modal dialog. Arrow keys select, Enter opens, Escape closes. */
import { type KeyboardEvent, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { navigate } from "../../routing/location.ts";
import { matchItems, type PaletteItem } from "./match-items.ts";
import { usePaletteItems } from "./use-palette-items.ts";

interface CommandPaletteProps {
  readonly onClose: () => void;
  readonly onLogout: () => void;
  readonly onKeys: () => void;
}

export function CommandPalette({ onClose, onLogout, onKeys }: CommandPaletteProps) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const items = matchItems(usePaletteItems(text, onLogout, onKeys), text);
  const at = Math.min(active, items.length - 1);
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element !== null && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  useEffect(() => {
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [id, at]);
  const pick = (item: PaletteItem | undefined) => {
    if (item === undefined) return;
    onClose();
    if (item.to !== undefined) navigate(item.to);
    item.run?.();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setActive(items.length === 0 ? 0 : (at + step + items.length) % items.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      pick(items[at]);
    }
  };
  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Command palette"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => event.target === dialog.current && onClose()}
    >
      <input
        role="combobox"
        aria-label="Search pages, gateways, agents and actions"
        aria-expanded={items.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={items.length === 0 ? undefined : `${id}-${at}`}
        autoComplete="off"
        spellCheck={false}
        autoFocus
        placeholder="Go to a page, gateway, agent, instance or action"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={`${id}-list`} role="listbox" aria-label="Results">
        {items.map((item, i) => (
          <li
            key={item.id}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            onPointerMove={() => setActive(i)}
            onClick={() => pick(item)}
          >
            <span className="palette-title">{item.title}</span>
            <span className="muted small">{item.kind}</span>
          </li>
        ))}
      </ul>
      {items.length === 0 && <p className="palette-none muted">Nothing found</p>}
      <p className="palette-hint muted small" aria-hidden="true">
        <kbd>↑</kbd> <kbd>↓</kbd> select · <kbd>Enter</kbd> open · <kbd>Esc</kbd> close · <kbd>?</kbd> all
        shortcuts
      </p>
    </dialog>
  );
}
