/** A text field with suggestions (ARIA combobox pattern): arrow keys select, Enter accepts, Escape closes. */
import { type KeyboardEvent, useId, useState } from "react";

export interface Option {
  readonly text: string;
  /** Shown next to the text. */
  readonly note?: string;
}

interface ComboboxProps {
  readonly label: string;
  readonly isLabelHidden?: boolean;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly Option[];
  /** Called when a suggestion is accepted. */
  readonly onPick: (text: string) => void;
  /** Called when Enter is pressed and no suggestion is selected. */
  readonly onEnter?: () => void;
  readonly placeholder?: string;
}

export function Combobox(props: ComboboxProps) {
  const { label, isLabelHidden = false, value, onChange, options, onPick, onEnter, placeholder } = props;
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const isShown = isOpen && options.length > 0;
  const close = () => {
    setOpen(false);
    setActive(-1);
  };
  const pick = (text: string) => {
    setActive(-1);
    onPick(text);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((active + step + options.length + 1) % (options.length + 1));
    } else if (event.key === "Escape" && isShown) {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === "Enter") {
      const option = isShown ? options[active] : undefined;
      if (option !== undefined) {
        event.preventDefault();
        pick(option.text);
      } else if (onEnter !== undefined) {
        event.preventDefault();
        close();
        onEnter();
      }
    }
  };
  return (
    <div className="field combobox">
      <label htmlFor={id} className={isLabelHidden ? "visually-hidden" : "field-label"}>
        {label}
      </label>
      <input
        id={id}
        role="combobox"
        autoComplete="off"
        spellCheck={false}
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={`${id}-list`}
        aria-activedescendant={isShown && options[active] !== undefined ? `${id}-${active}` : undefined}
        value={value}
        placeholder={placeholder}
        onChange={({ target }) => {
          setOpen(true);
          setActive(-1);
          onChange(target.value);
        }}
        onFocus={() => setOpen(true)}
        onBlur={close}
        onKeyDown={onKeyDown}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={`${label} suggestions`} hidden={!isShown}>
        {options.map(({ text, note }, i) => (
          <li
            key={text}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === active}
            // Pointer down, not click: the blur event before a click closes the list.
            onPointerDown={(event) => {
              event.preventDefault();
              pick(text);
            }}
          >
            <span>{text === "" ? <em>empty</em> : text}</span>
            {note !== undefined && <span className="muted small">{note}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
